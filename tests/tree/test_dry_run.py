"""A dry run calls no model, runs no program, and gives the same result everywhere."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.decisions import decisions
from tests.toy import ToyRepository
from tests.tree.runs import RUN_ID, search
from treewright.cli.main import cli
from treewright.tree.records import store
from treewright.tree.validation import validate

SHAPE = {"ideas_per_node": 3, "beam_width": 2, "max_depth": 2, "sweep_config_limit": 8}
SOURCES = """\
[[ideas]]
source = "llm"

[ideas.endpoint]
base_url = "http://127.0.0.1:9/v1"
model = "nobody"
api_key_env = "NO_SUCH_KEY"

[[ideas]]
source = "command"
command = "touch '{ran}'; exit 1"
"""


def target(path: Path, ran: Path) -> ToyRepository:
    toy = ToyRepository.create(path)
    before, _, _ = (toy.path / "treewright.toml").read_text().partition("[[ideas]]")
    toy.write("treewright.toml", before + SOURCES.format(ran=ran))
    toy.write("sweep.sh", f"touch '{ran}'; exit 1\n")
    toy.commit("only sources that ask somebody")
    return toy


def test_a_dry_run_announces_the_evaluations_that_the_guide_lists(toy: ToyRepository) -> None:
    shape = ["--beam-width", "1", "--ideas-per-node", "3", "--max-depth", "2"]
    done = CliRunner().invoke(
        cli, ["tree", "--repo", str(toy.path), "--sweep-config-limit", "8", "--dry-run", *shape]
    )
    assert done.exit_code == 0, done.output
    assert "at most 6 evaluations" in done.stderr


def test_a_dry_run_starts_no_model_generator_or_sweep(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    toy = target(tmp_path / "one", ran)
    run_dir = search(toy.path, **SHAPE, dry_run=True)
    assert not ran.exists()
    manifest = store.load(run_dir)
    assert len(manifest.evaluations) >= 3
    assert manifest.spent.cost_usd == 0
    assert validate(run_dir, toy.path) == []
    again = target(tmp_path / "two" / "one", ran)
    search(again.path, **SHAPE, dry_run=True)
    mine, theirs = decisions(run_dir), decisions(again.run_dir(RUN_ID))
    for found in (mine, theirs):
        for key in ("root_commit", "root_commit_time", "agent_config", "baseline_doubt"):
            del found[key]
        for record in (*found["nodes"].values(), *found["evaluations"].values()):
            record.pop("commit", None)
            record.pop("candidate_commit", None)
            record.pop("tree", None) if record.get("parent_node_id") is None else None
    assert mine == theirs
