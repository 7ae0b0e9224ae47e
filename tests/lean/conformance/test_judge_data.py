"""The judge alone, on every host: it has read nothing, and no data makes it prove a falsehood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.lean.terms import Data
from tests.lean.test_judge import ATTACKS, Pair, rule, wrong_proof
from treewright.lean.hosts.host import Host
from treewright.lean.session.errors import LeanError
from treewright.lean.session.protocol import Open, Reference, Reply, Request
from treewright.lean.verify.judge import Judge
from treewright.lean.verify.originals import OriginalReader

ORIGINAL = "theorem target : 1 = 2 := by\n  sorry\n"
TRUE = "theorem target : 1 = 1 := by\n  sorry\n"


@pytest.fixture(scope="module")
def pair(host: Host) -> Iterator[Pair]:
    with OriginalReader(host) as reader, Judge(host.judging()) as judge:
        yield Pair(reader, judge)


def test_honest_data_is_accepted(pair: Pair) -> None:
    data = Data()
    one = data.literal(1)
    data.declare("theorem", "target", data.eq_nat(one, one), data.refl(one))
    ruling = rule(pair, data, TRUE)
    assert (ruling.reason, ruling.names, ruling.constants) == ("proved", ("target",), 1)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_data_proves_a_falsehood(pair: Pair, attack: Callable[[Data], None]) -> None:
    data = Data()
    attack(data)
    ruling = rule(pair, data, ORIGINAL)
    assert ruling.reason not in ("proved", "lost", "timeout"), ruling
    assert ruling.detail


@pytest.mark.parametrize(
    "reading",
    [Open(text=ORIGINAL), Reference(text=ORIGINAL, targets=[])],
    ids=["open", "reference"],
)
def test_a_process_that_read_a_text_does_not_judge(
    host: Host, pair: Pair, reading: Request[Reply]
) -> None:
    data = Data()
    wrong_proof(data)
    reference = pair.reader.reference(ORIGINAL, ["target"], 60)
    meaning = pair.reader.meaning(reference, msgspec.Raw(b"[]"), 60)
    with Judge(host.judging()) as other:
        other._ask(reading, 60)
        with pytest.raises(LeanError, match="has read texts: it does not judge"):
            other.rule(reference, meaning, data.raw(), [], 60)
