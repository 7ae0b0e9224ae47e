"""mutate: every idea is a patch that git applies, and changes one token only."""

from __future__ import annotations

import ast
import io
import subprocess
import tempfile
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.tree.config import MutateIdeas
from treewright.tree.ideas.idea_source import Idea, IdeaSourceError, NodeContext
from treewright.tree.ideas.idea_text import key, patches
from treewright.tree.ideas.mutate_source import MutateSource

SOURCE = '''\
"""Docstring with 42 and 0.5 in it."""
import numpy as np

RATE = 0.1
DEPTH = 3
TINY = 1e-3
SEED = 7
KERNEL = "rbf"


def fit(x, width=10, *, penalty='l2', axis=1):
    y = x[0] + x[-1] + x[3] + 1
    return np.clip(y, 0, 2.5) * RATE ** 2


OPTIONS = {"shrink": True, "epochs": 1_000, "mask": 0xFF}
'''


@pytest.fixture
def propose(make_context: Callable[..., NodeContext]) -> Callable[..., list[Idea]]:
    def go(source: str | bytes = SOURCE, taken=(), path="model.py", options=None, **fields):
        context = make_context(**{"wanted": 1000} | fields)
        target = context.checkout / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.encode() if isinstance(source, str) else source)
        config = MutateIdeas(files=[path], options=options or {})
        return MutateSource(config).propose(context, taken).ideas

    return go


def edits(ideas: list[Idea]) -> set[tuple[str, str]]:
    """(old line, new line) of every idea."""
    found = set()
    for idea in ideas:
        (patch,) = patches(idea.text)
        body = patch.split("\n")[3:]
        found.add(
            (
                next(line[1:] for line in body if line.startswith("-")).strip(),
                next(line[1:] for line in body if line.startswith("+")).strip(),
            )
        )
    return found


def test_numbers_named_and_unnamed(propose):
    assert edits(propose()) == {
        ("RATE = 0.1", "RATE = 0.05"),
        ("RATE = 0.1", "RATE = 0.2"),
        ("DEPTH = 3", "DEPTH = 2"),
        ("DEPTH = 3", "DEPTH = 6"),
        ("TINY = 1e-3", "TINY = 5e-4"),
        ("TINY = 1e-3", "TINY = 2e-3"),
        *(
            (
                "def fit(x, width=10, *, penalty='l2', axis=1):",
                f"def fit(x, width={new}, *, penalty='l2', axis=1):",
            )
            for new in (5, 20)
        ),
        *(
            ("return np.clip(y, 0, 2.5) * RATE ** 2", f"return np.clip(y, 0, {new}) * RATE ** 2")
            for new in (1.25, 5.0)
        ),
        *(
            ("return np.clip(y, 0, 2.5) * RATE ** 2", f"return np.clip(y, 0, 2.5) * RATE ** {new}")
            for new in (1, 4)
        ),
        *(
            (
                'OPTIONS = {"shrink": True, "epochs": 1_000, "mask": 0xFF}',
                f'OPTIONS = {{"shrink": True, "epochs": {new}, "mask": 0xFF}}',
            )
            for new in ("500", "2_000")
        ),
    }


def test_options_by_variable_argument_and_key(propose):
    options = {"KERNEL": ["rbf", "it's", 'a"b'], "penalty": ["l1", None], "shrink": [True, False]}
    options["penalty"] = ["l1"]
    found = edits(propose(options=options))
    assert ('KERNEL = "rbf"', 'KERNEL = "it\'s"') in found
    assert ('KERNEL = "rbf"', "KERNEL = 'a\"b'") in found
    assert any("penalty='l1'" in new for _, new in found)
    assert any('"shrink": False' in new for _, new in found)
    assert not any(old == new for old, new in found)


def test_options_replace_factors_for_a_number(propose):
    found = edits(propose("RATE = 0.1\n", options={"RATE": [0.3, 0.1]}))
    assert found == {("RATE = 0.1", "RATE = 0.3")}


def test_k_ideas_are_at_k_places(propose):
    lines = [f"V{n} = {n}.5\n" for n in range(30)]
    ideas = propose("".join(lines), wanted=30)
    assert len({idea.origin for idea in ideas}) == 30


def test_named_values_come_first_and_titles_tell_places_apart(propose):
    titles = [idea.text.splitlines()[0] for idea in propose()]
    half = len(titles) // 2
    for part in (titles[:half], titles[half:]):  # two factors: two passes over all places
        assert [" in model.py" in title for title in part] == [True] * 5 + [False] * 2
    assert "# model.py, line 13, in fit: 2.5 -> 5.0" in titles
    assert len(set(titles)) == len(titles)


def test_order_depends_on_seed_and_node_only(propose):
    once = [idea.text for idea in propose(seed=3, node_id="n1")]
    assert once == [idea.text for idea in propose(seed=3, node_id="n1")]
    assert once != [idea.text for idea in propose(seed=4, node_id="n1")]
    assert once != [idea.text for idea in propose(seed=3, node_id="n2")]
    assert sorted(once) == sorted(idea.text for idea in propose(seed=4, node_id="n1"))
    places = {tuple(idea.origin for idea in propose(seed=seed, wanted=5)) for seed in range(6)}
    assert len(places) > 1


def test_taken_ideas_are_not_proposed_again(propose):
    first = propose(wanted=4)
    taken = {key(idea.text) for idea in first}
    second = propose(wanted=4, taken=taken)
    assert len(second) == 4
    assert taken.isdisjoint(key(idea.text) for idea in second)


def test_a_deeper_node_goes_on_from_its_own_values_and_back_only_at_the_end(
    propose, tmp_path: Path
):
    (up,) = (i for i in propose("RATE = 0.1\n") if "-> 0.2" in i.text)
    (tmp_path / "idea_000.md").write_text(up.text)
    dirs = [tmp_path, tmp_path / "not there"]
    deeper = propose("RATE = 0.2\n", taken=[key(up.text)], context_ideas_dirs=dirs)
    assert [new for _, new in (edits([i]).pop() for i in deeper)] == [
        "RATE = 0.4",
        "RATE = 0.1",
    ]


def test_many_depths_never_run_dry(propose, tmp_path: Path):
    """Following the first idea each time gives a new file and new ideas every time."""
    source, taken, seen = SOURCE, set(), set()
    for depth in range(12):
        known = {"taken": taken, "context_ideas_dirs": [tmp_path]}
        idea = propose(source, wanted=1, node_id=f"n{depth}", **known)[0]
        taken.add(key(idea.text))
        (tmp_path / f"idea_{depth:03}.md").write_text(idea.text)
        ((old, new),) = edits([idea])
        source = "\n".join(new if line.strip() == old else line for line in source.split("\n"))
        source = source.replace("\nreturn", "\n    return")
        assert source not in seen
        seen.add(source)


def test_protected_and_linked_files_are_left_alone(make_context, tmp_path: Path):
    context = make_context(protected_paths=["sweep.py"])
    (tmp_path / "outside.py").write_text("A = 5\n")
    (context.checkout / "link.py").symlink_to(tmp_path / "outside.py")
    (context.checkout / "sweep.py").write_text("A = 5\n")
    (context.checkout / "model.py").write_text("B = 5\n")
    (context.checkout / ".hidden").mkdir()
    (context.checkout / ".hidden/run.py").write_text("C = 5\n")
    ideas = MutateSource(MutateIdeas(files=["**/*.py"])).propose(context, ()).ideas
    assert {idea.origin.split(":")[1] for idea in ideas} == {"model.py"}


@pytest.mark.parametrize(
    ("files", "content", "message"),
    [
        (["absent.py"], "", "no tunable file matches absent.py"),
        (["../up.py"], "", "not inside the repository"),
        (["model.py"], "def broken(:\n", "no tunable file can be read as Python: model.py"),
    ],
)
def test_files_that_cannot_be_used(files, content, message, make_context):
    context = make_context()
    (context.checkout / "model.py").write_text(content)
    with pytest.raises(IdeaSourceError, match=message):
        MutateSource(MutateIdeas(files=files)).propose(context, ())


def test_an_unreadable_file_beside_a_good_one_is_noted(make_context):
    context = make_context()
    (context.checkout / "bad.py").write_text("def broken(:\n")
    (context.checkout / "good.py").write_text("A = 5\n")
    assert MutateSource(MutateIdeas(files=["*.py"])).propose(context, ()).ideas
    assert "bad.py" in (context.scratch / "mutate.log").read_text()


def test_the_first_line_after_a_byte_order_mark(propose):
    assert edits(propose(b"\xef\xbb\xbfRATE = 0.5")) == {
        ("\ufeffRATE = 0.5", "\ufeffRATE = 0.25"),
        ("\ufeffRATE = 0.5", "\ufeffRATE = 1.0"),
    }


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("model.py", "--- a/model.py\n"),
        ("a dir/m.py", "--- a/a dir/m.py\t\n"),  # as git and GNU diff end a name with a blank
        ('q"\\.py', '--- "a/q\\042\\134.py"\n'),
    ],
)
def test_file_names_are_written_as_git_writes_them(path: str, header: str, propose):
    (patch,) = patches(propose("RATE = 0.5\n", path=path)[0].text)
    assert patch.startswith(header)


names = st.sampled_from(["alpha", "größe", "n_layers", "rate", "KERNEL", "axis"])
numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(0, 1e12).map(repr),
    st.sampled_from(["1e-3", "2.5E6", "1_000", "0x1F", ".5", "5.", "1e300", "3j"]),
)
values = st.one_of(numbers, numbers.map("-{}".format), st.sampled_from(['"rbf"', "'l2'", "True"]))
statements = st.one_of(
    st.builds("{} = {}".format, names, values),
    st.builds("{} = [{}, {}]".format, names, values, values),
    st.builds("{} = dict({}={}, other={})".format, names, names, values, values),
    st.builds("{} = {{'{}': {}}}  # é ♞ {}".format, names, names, values, values),
    st.builds("def f({}={}):\n    return x[{}] * {}".format, names, values, values, values),
    st.builds("s = f'{{x:{}}} {}' 'a' 'b'".format, st.integers(1, 9), numbers),
    st.builds('"""text {}"""'.format, numbers),
)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    text = "\n".join(draw(st.lists(statements, min_size=1, max_size=8)))
    text = text + draw(st.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def tokens(source: bytes) -> list[str]:
    return [token.string for token in tokenize.tokenize(io.BytesIO(source).readline)]


@settings(max_examples=25, deadline=None)
@given(sources(), st.sampled_from(["model.py", "a dir/m.py", 'a dir/ö"x.py']), st.integers(0, 3))
def test_every_patch_applies_and_changes_one_token(source: bytes, path: str, seed: int):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        target = root / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source)
        context = NodeContext("n", 0, 6, seed, root, root, [], "", None, root)
        config = MutateIdeas(files=[path], options={"KERNEL": ["rbf", "poly"], "rate": [3, 0.25]})
        for idea in MutateSource(config).propose(context, ()).ideas:
            (patch,) = patches(idea.text)
            done = subprocess.run(
                ["git", "apply", "--whitespace=nowarn", "-"],
                cwd=root,
                input=patch.encode(),
                capture_output=True,
            )
            assert done.returncode == 0, done.stderr
            edited = target.read_bytes()
            ast.parse(edited)
            before, after = tokens(source), tokens(edited)
            assert len(before) == len(after)
            assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
            assert edited.count(b"\r\n") == source.count(b"\r\n")
            assert edited.endswith(b"\n") == source.endswith(b"\n")
            target.write_bytes(source)
