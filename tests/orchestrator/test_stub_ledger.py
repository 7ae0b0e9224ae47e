"""After runs of profile 0 only, every view shows the ledger of stubs and says that it is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.orchestrator.test_ledger import attempt
from treewright.cli.main import cli
from treewright.dashboard import orchestrator_view
from treewright.dashboard.roots import Roots
from treewright.orchestrator.ledger.ledger import Ledger

NOTICE = "ledger of stub strategies (profile 0)"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Ledger(tmp_path / ".treewright" / "stubs-ledger.db") as ledger:
        ledger.record([attempt("a", toolchain="stub"), attempt("b", toolchain="stub")])
    return tmp_path


def shown(project: Path) -> tuple[bool, int, str]:
    """Whether the views show stubs, how many attempts they show, and the line on the page."""
    stats = CliRunner().invoke(cli, ["ledger", "stats", "--json"])
    document = json.loads(stats.stdout)
    (found,) = Roots([project]).scan()
    served = orchestrator_view.stats(found)
    assert document["stubs"] == served["stubs"]
    attempts = sum(row["attempts"] for row in document["strategies"].values())
    assert attempts == served["attempts"]
    return served["stubs"], attempts, orchestrator_view.summary(found)["liveness"]["detail"]


def test_the_only_ledger_is_shown_and_named(project: Path) -> None:
    stubs, attempts, detail = shown(project)
    assert (stubs, attempts) == (True, 2)
    assert detail.startswith(NOTICE)
    text = CliRunner().invoke(cli, ["ledger", "stats"]).stdout
    assert text.splitlines()[0].startswith(NOTICE)
    listed = CliRunner().invoke(cli, ["ledger", "attempts"])
    assert NOTICE in listed.stderr
    assert NOTICE not in listed.stdout


def test_a_real_ledger_is_shown_unless_the_profile_is_0(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(project / ".treewright" / "ledger.db") as ledger:
        ledger.record([attempt("a")])
    stubs, attempts, detail = shown(project)
    assert (stubs, attempts) == (False, 1)
    assert NOTICE not in detail
    monkeypatch.setenv("ORCH_PROFILE", "0")
    stubs, attempts, detail = shown(project)
    assert (stubs, attempts) == (True, 2)
    assert NOTICE in detail
