"""A file is elaborated once: a text that begins like the last one goes on from where it differs."""

from __future__ import annotations

from collections.abc import Callable

from tests.lean.conftest import state
from tests.lean.long_file import long_file
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify import restrictions
from treewright.lean.verify.additions import find_additions

TEXT = long_file(80)
SHORTER = long_file(60)  # with `f1`, behind which something changes


def _check(lean: HostSession, text: str, **kwargs: str) -> CheckResult:
    done = lean.check(text, sorries=True, **kwargs)
    assert isinstance(done, CheckResult), done
    return done


def _said(result: CheckResult) -> tuple[object, ...]:
    """Everything that does not name a state of the session."""
    places = [
        (p.start, p.end, p.declaration, [g.pretty for s in p.states for g in s.goals], p.trouble)
        for p in result.sorries
    ]
    return result.diagnostics, result.unproved, places


def test_reused_elaboration_gives_the_same_messages_as_a_new_one(
    lean_session: Callable[[], HostSession],
) -> None:
    """Each of the texts after another one, and alone: with its first line another, all is new."""
    lean = lean_session()
    texts = [
        SHORTER,
        SHORTER.replace("f0 n ≤ f0 n + 1", "f0 n ≤ 3 + f0 n"),
        SHORTER.replace("theorem f1_succ", "theorem oops : 1 = 2 := rfl\ntheorem f1_succ"),
        SHORTER.replace("def f1 ", 'notation "two" => 2\ndef f1 '),
        SHORTER.replace("\n", "\r\n"),
        SHORTER + "theorem behind : Long.f0 0 = 0 := Long.f0_zero\n",
        SHORTER.partition("theorem late")[0],
    ]
    after_another = [_said(_check(lean, text)) for text in texts]
    alone = []
    for number, text in enumerate(texts):
        _check(lean, f"-- nothing of text {number}\n")
        alone.append(_said(_check(lean, text)))
    assert after_another == alone


def test_a_command_whose_meaning_depends_on_later_text_is_read_again(lean: HostSession) -> None:
    first = _check(lean, "theorem t : 1 = 1 := by\n  skip\n  rfl\n#check t\n")
    second = _check(lean, "theorem t : 1 = 1 := by\n  skip\n  exact nope\n#check t\n")
    third = _check(lean, "theorem t : 1 = 1 := by\n  skip\n")
    assert not first.errors
    assert "nope" in second.errors[0].text
    assert "unsolved goals" in third.errors[0].text


def test_a_repeated_text_is_checked_quickly_and_its_goals_are_usable(lean: HostSession) -> None:
    text = f"-- begins like no other text of this session\n{TEXT}"
    first = _check(lean, text)
    again = min((_check(lean, text) for _ in range(5)), key=lambda result: result.ms)
    assert again.ms < first.ms / 3
    for place in again.sorries:
        assert state(lean.run_tactic(place.states[0], "omega")).complete


def test_a_target_near_the_top_does_not_wait_for_the_end(lean: HostSession) -> None:
    broken = TEXT + "theorem after : 1 = 2 := by decide\n"
    early = _check(lean, broken, until="early")
    assert [place.declaration for place in early.sorries] == ["Long.early"]
    assert not early.errors
    # Another declaration of that name is behind it.
    twice = "namespace A\ntheorem t : 1 = 1 := by sorry\nend A\ntheorem B.t : 2 = 2 := by sorry\n"
    assert len(_check(lean, twice, until="t").sorries) == 2
    assert [p.declaration for p in _check(lean, twice, until="A.t").sorries][:1] == ["A.t"]


def test_rules_are_applied_to_a_text_that_was_read_without_one(lean: HostSession) -> None:
    original = "theorem t : 1 = 1 := by\n  sorry\n#check t\n"
    candidate = original.replace("sorry", "run_tac pure ()\n  rfl")
    changed = find_additions(original.encode(), candidate.encode())
    assert isinstance(lean.check_file(candidate), CheckResult)
    guarded = lean.check_file(candidate, rules=restrictions.rules(changed, commands=False))
    assert isinstance(guarded, CheckResult)
    assert guarded.stopped.startswith("escape: ")
