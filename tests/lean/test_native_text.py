"""The native host's text, elaborated by the bundled Lean: a newer one than most toolchains at hand.

Its code is not run here: tests/lean/conformance does that, where there is a toolchain.
"""

from __future__ import annotations

import pytest

from treewright.lean.hosts.native.host_program import SOURCE
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession

LONG = 3_600.0  # half a minute of processor time, on whatever machine


@pytest.mark.xdist_group("native-text")
def test_the_native_host_is_taken_by_the_bundled_lean(home: LeanHome) -> None:
    text = SOURCE.read_text(encoding="utf-8")
    with HostSession(home) as lean:
        wrong = lean.check_file(
            text[: text.index("/-! ## What the host holds")] + "#check kernelOf 7\n", timeout=LONG
        )
        assert isinstance(wrong, CheckResult)
        assert [d.text.splitlines()[0] for d in wrong.errors], "an error in it would not be seen"
        result = lean.check_file(text, timeout=LONG)
    assert isinstance(result, CheckResult), result
    assert not result.errors, result.errors[0].format("host.lean")
