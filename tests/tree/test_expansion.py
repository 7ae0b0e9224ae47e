"""Choosing ideas: what counts as tried before, and what is written down about it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.toy import CONFIG, ToyRepository
from tests.tree.making import manifest
from treewright.tree import config as configuration
from treewright.tree.ideas import text as idea_text
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import state
from treewright.tree.records.model import Manifest, Node

IDEAS = [f"# Idea {letter}\n\nText.\n" for letter in "abcdef"]


class Tree:
    """A run in memory whose nodes can be expanded."""

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
        """Expands a node and records it; the titles of the chosen ideas."""
        expander = Expander(self.toy.path, self.run_dir, self.config)
        event = expander.expand(self.manifest, node_id, depth, self.manifest.ideas_per_node)
        state.apply(self.manifest, event)
        return [idea_text.title((self.run_dir / idea.path).read_text())[-1] for idea in event.ideas]

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
        """A root with two children."""
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
def test_what_counts_as_tried(grow, scope, first, second, skipped) -> None:
    tree = grow(scope)
    assert tree.expand("n0000", 1) == ["a", "b"]
    assert tree.expand("n0001", 2) == first
    assert tree.expand("n0002", 2) == second
    assert tree.skipped("n0002") == skipped


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


def test_a_node_expanded_again_goes_on_where_it_stopped(grow) -> None:
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
