"""The server on a project's own toolchain, in its default sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lean import native_projects
from tests.lean.projects import BASIC, EVEN, small_project
from tests.mcp_server.agent import Agent, Failed, agent

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    native = native_projects.required()
    root = small_project(tmp_path_factory.mktemp("native") / "foo", Basic=BASIC, Even=EVEN)
    native_projects.lake_build(native, root, "Foo.Basic")
    return root


@pytest.fixture(scope="module", params=["--sandbox", "--no-sandbox"])
def serving(request: pytest.FixtureRequest, project: Path) -> Iterator[Agent]:
    if request.param == "--sandbox":
        request.getfixturevalue("bubblewrap")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in native_projects.settings().items():
            patch.setenv(name, value)
        with agent("--lean=native", request.param, cwd=project) as running:
            yield running


def test_a_file_of_the_project_is_checked(serving: Agent) -> None:
    found = serving.call("lean_check", path="Foo/Even.lean")
    assert (found["errors"], found["sorries"]) == (0, ["Foo.Even.double"])
    wrong = serving.call("lean_check", text='import Foo.Basic\ndef wrong : Nat := "seven"\n')
    assert (wrong["ok"], wrong["errors"]) == (False, 1)
    with pytest.raises(Failed, match=r"Foo\.Absent"):
        serving.call("lean_check", text="import Foo.Absent\n")


def test_tactics_are_tried_on_its_goals(serving: Agent) -> None:
    listed = serving.call("lean_sorries")
    assert listed["complete"]
    assert [each["declaration"] for each in listed["sorries"]] == ["Foo.Even.double"]
    goal = serving.call("lean_goals", path="Foo/Even.lean")["goals"][0]["goal"]
    tried = serving.call("lean_try", goal=goal, tactics=["exact h.add h", "rfl", "sorry"])["tried"]
    assert [each["status"] for each in tried] == ["closes", "fails", "sorry"]


def test_a_proof_is_found_and_certified(serving: Agent, project: Path) -> None:
    shutil.rmtree(project / ".treewright", ignore_errors=True)
    found = serving.call("lean_prove", path="Foo/Even.lean", seconds=300, simulations=50)
    assert (found["proved"], found["total"], found["complete"]) == (1, 1, True)
    given = {"original_path": "Foo/Even.lean", "candidate": EVEN.replace("sorry", "exact h.add h")}
    verified = serving.call("lean_verify", **given)
    assert verified["proved"]
    assert verified["certificate"]["targets"] == ["Foo.Even.double"]
    cheat = given | {"candidate": EVEN.replace("sorry", "exact lcProof")}
    assert not serving.call("lean_verify", **cheat)["proved"]


def test_a_timeout_of_the_native_toolchain_is_an_error(serving: Agent) -> None:
    slow = "example : (List.range 100000).length = 100000 := by decide\n"
    with pytest.raises(Failed):
        serving.call("lean_check", text=f"set_option maxRecDepth 1000000000\n{slow}", seconds=0.2)
    assert serving.call("lean_check", text="theorem t : 1 = 1 := rfl\n")["ok"]
