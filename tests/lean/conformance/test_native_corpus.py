"""The corpus of attacks and of honest proofs on the native host; see also test_attacks.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lean import corpus
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.session.errors import MissingModule
from treewright.lean.verify import restrictions
from treewright.lean.verify.replayer import Replayer


@pytest.fixture(scope="module")
def replaying(native: NativeHost) -> Iterator[Replayer]:
    with Replayer(native) as replayer:
        yield replayer


def test_no_attack_gets_through(replaying: Replayer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rules, and without them where it is they that stop it."""
    for attack in corpus.attacks():
        for guarded in (True, False):
            with monkeypatch.context() as patch:
                if not guarded:
                    patch.setattr(restrictions, "rules", lambda *_, **__: None)
                try:
                    verdict = replaying.text(
                        attack.original,
                        attack.candidate,
                        [attack.target],
                        declarations=True,
                        timeout=60,
                    )
                except MissingModule:
                    break  # a toolchain may have been built without some of its library
            assert not verdict.proved, (attack, guarded)
            assert not verdict.is_fault, (attack, guarded, verdict)
            if verdict.reason not in ("escape", "sorry"):
                break


def test_honest_proofs_pass_that_this_lean_can_read(replaying: Replayer) -> None:
    cases = corpus.honest()
    verdicts = {c.name: replaying.text(c.original, c.candidate, c.targets) for c in cases}
    refused = {name: verdict for name, verdict in verdicts.items() if not verdict.proved}
    assert all(verdict.reason == "error" for verdict in refused.values()), refused
    assert len(refused) <= len(cases) // 10
