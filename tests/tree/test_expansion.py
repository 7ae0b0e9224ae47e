"""Choosing ideas: which ideas count as tried before, and the records of the choice."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from tests.toy import CONFIG, ToyRepository
from tests.tree.making import evaluation, manifest
from treewright.tree import config as configuration
from treewright.tree.ideas import idea_text
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import state
from treewright.tree.records.model import Manifest, Node
from treewright.tree.validation import nodes
from treewright.tree.validation.findings import Subject

IDEAS = [f"# Idea {letter}\n\nText.\n" for letter in "abcdef"]


class Tree:
    """A run in memory with nodes that can be expanded."""

    def __init__(self, toy: ToyRepository, run_dir: Path, **shape) -> None:
        self.toy = toy
        (toy.path / "treewright.toml").write_text(CONFIG)
        self.config = configuration.load(toy.path / "treewright.toml")
        self.run_dir = run_dir
        head = toy.git("rev-parse", "HEAD").strip()
        self.manifest: Manifest = manifest(root_commit=head, **shape)
        self.manifest.nodes["n0000"].commit = head

    def child(self, node_id: str, parent: str) -> None:
        root = self.manifest.nodes["n0000"]
        self.manifest.nodes[node_id] = Node(
            node_id=node_id, parent_node_id=parent, depth=1, commit=root.commit, tree="x", ref=None,
            worktree_path=None, baseline_results_csv_path="", sweep_config_limit=8, idea_chain=[],
            status="frontier", created_at="", node_ideas_dir=f"node_ideas/{node_id}",
        )  # fmt: skip

    def expand(self, node_id: str, depth: int) -> list[str]:
        """Expand a node, record it, and return the titles of the chosen ideas."""
        expander = Expander(self.toy.path, self.run_dir, self.config)
        event = expander.expand(self.manifest, node_id, depth, self.manifest.ideas_per_node)
        state.apply(self.manifest, event)
        return [idea_text.title((self.run_dir / idea.path).read_text())[-1] for idea in event.ideas]

    def repeats(self) -> dict[str, list[str]]:
        """Return the findings about ideas that were tried before, by node."""
        for number, node in enumerate(self.manifest.nodes.values()):
            node.artifacts.promoted_from_eval_id = f"e{number:06d}"
            self.manifest.evaluations[f"e{number:06d}"] = evaluation(number)
        subject = Subject(self.run_dir, self.toy.path, self.manifest, self.config)
        found: dict[str, list[str]] = {}
        for finding in nodes.check_nodes(subject):
            if finding.code == "expansion" and finding.subject != "n0000":
                found.setdefault(finding.subject, []).append(finding.message)
        return found

    def skipped(self, node_id: str) -> list[str]:
        dedupe = self.manifest.nodes[node_id].dedupe
        assert dedupe is not None
        return [skipped.origin for skipped in dedupe.skipped]


@pytest.fixture
def toy_with_ideas(toy: ToyRepository) -> ToyRepository:
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number, text in enumerate(IDEAS):
        toy.write(f"ideas/{number}.md", text)
    return toy


@pytest.fixture
def grow(toy_with_ideas: ToyRepository, tmp_path: Path):
    def make(scope: str, per_node: int = 2) -> Tree:
        """Return a tree with a root and two children."""
        run = tmp_path / scope
        run.mkdir()
        tree = Tree(toy_with_ideas, run, dedupe_scope=scope, ideas_per_node=per_node)
        tree.child("n0001", "n0000")
        tree.child("n0002", "n0000")
        return tree

    return make


@pytest.mark.parametrize(
    ("scope", "first", "second", "skipped"),
    [
        ("node_plus_ancestors", ["c", "d"], ["c", "d"], ["ideas/0.md", "ideas/1.md"]),
        ("global", ["c", "d"], ["e", "f"], [f"ideas/{i}.md" for i in range(4)]),
        ("none", ["a", "b"], ["a", "b"], []),
    ],
)
def test_the_scope_decides_which_ideas_count_as_tried(grow, scope, first, second, skipped) -> None:
    tree = grow(scope)
    assert tree.expand("n0000", 1) == ["a", "b"]
    assert tree.expand("n0001", 2) == first
    assert tree.expand("n0002", 2) == second
    assert tree.skipped("n0002") == skipped


@pytest.mark.parametrize(
    ("scope", "repeated"), [("global", ["n0002"]), ("node_plus_ancestors", []), ("none", [])]
)
def test_validation_respects_the_dedupe_scope(grow, scope, repeated) -> None:
    """Two siblings try the same idea: a finding for the younger one where the scope is the whole
    run."""
    tree = grow("node_plus_ancestors")
    for node_id, depth in (("n0000", 1), ("n0001", 2), ("n0002", 2)):
        tree.expand(node_id, depth)
        tree.manifest.nodes[node_id].dedupe.scope = scope
    tree.manifest.dedupe_scope = scope
    assert list(tree.repeats()) == repeated


def test_choices_of_the_widest_scope_are_valid(grow) -> None:
    tree = grow("global")
    for node_id, depth in (("n0000", 1), ("n0001", 2), ("n0002", 2)):
        tree.expand(node_id, depth)
    assert list(tree.repeats()) == []


def test_the_depth_in_prompts_is_that_of_the_manifest(grow) -> None:
    """The generator returns the context of its node, as JSON and as prose."""
    tree = grow("none")
    tree.manifest.dry_run = False
    tell = (
        '(cat "$TREEWRIGHT_NODE_CONTEXT"; cat "$TREEWRIGHT_NODE_CONTEXT_MD") '
        '> "$TREEWRIGHT_OUTPUT_DIR/told.md"'
    )
    command = configuration.CommandIdeas(command=tell, pass_arguments=False)
    tree.config = msgspec.structs.replace(tree.config, ideas=[command])
    for node_id, depth in (("n0000", 0), ("n0001", 1)):
        node = tree.manifest.nodes[node_id]
        assert node.depth == depth
        tree.expand(node_id, depth + 1)
        told = (tree.run_dir / node.ideas[0].path).read_text()
        assert f'"depth": {depth},' in told
        assert f"# Node {node_id} at depth {depth}\n" in told


def test_the_same_text_twice_in_a_source_is_one_idea(grow) -> None:
    tree = grow("node_plus_ancestors", per_node=6)
    tree.toy.write("ideas/0b.md", IDEAS[0].replace("\n", "\r\n") + "\n\n")
    assert tree.expand("n0000", 1) == ["a", "b", "c", "d", "e", "f"]
    record = tree.manifest.nodes["n0000"].dedupe.skipped[0]
    assert (record.origin, record.duplicate_of) == ("ideas/0b.md", "ideas/0.md")


def test_a_skipped_idea_names_the_file_that_has_it(grow) -> None:
    tree = grow("node_plus_ancestors")
    tree.expand("n0000", 1)
    tree.expand("n0001", 2)
    dedupe = tree.manifest.nodes["n0001"].dedupe
    assert [one.duplicate_of for one in dedupe.skipped] == [
        "node_ideas/n0000/idea_000.md",
        "node_ideas/n0000/idea_001.md",
    ]
    assert dedupe.scope == "node_plus_ancestors"


def test_a_node_records_its_ideas_and_the_context_they_were_chosen_in(grow) -> None:
    tree = grow("node_plus_ancestors")
    tree.expand("n0000", 1)
    assert tree.manifest.nodes["n0000"].context_idea_files == []
    tree.expand("n0001", 2)
    node = tree.manifest.nodes["n0001"]
    assert node.generated_idea_files == [f"node_ideas/n0001/idea_00{i}.md" for i in range(2)]
    assert node.context_ideas_dirs == ["node_ideas/n0001", "node_ideas/n0000"]
    assert {one.path: one.sha256 for one in node.context_idea_files} == {
        f"node_ideas/n0000/idea_00{i}.md": hashlib.sha256(IDEAS[i].encode()).hexdigest()
        for i in range(2)
    }
    for record in node.ideas:
        data = (tree.run_dir / record.path).read_bytes()
        assert record.sha256 == hashlib.sha256(data).hexdigest()


def test_a_second_expansion_continues_where_the_first_stopped(grow) -> None:
    tree = grow("node_plus_ancestors")
    assert tree.expand("n0000", 1) == ["a", "b"]
    assert tree.expand("n0000", 2) == ["c", "d"]
    node = tree.manifest.nodes["n0000"]
    assert node.generated_idea_files == [f"node_ideas/n0000/idea_00{i}.md" for i in (2, 3)]
    assert [idea.depth for idea in node.ideas] == [1, 1, 2, 2]
    assert tree.expand("n0000", 3) == ["e", "f"]
    assert tree.expand("n0000", 4) == []


def test_files_of_a_killed_expansion_are_replaced(grow) -> None:
    tree = grow("node_plus_ancestors")
    directory = tree.run_dir / "node_ideas" / "n0000"
    directory.mkdir(parents=True)
    for name in ("idea_000.md", "idea_007.md", ".tw-tmp-1-a"):
        (directory / name).write_text("half of an idea")
    assert tree.expand("n0000", 1) == ["a", "b"]
    assert sorted(path.name for path in directory.iterdir()) == ["idea_000.md", "idea_001.md"]
