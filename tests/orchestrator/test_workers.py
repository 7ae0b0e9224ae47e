"""The other strategies: search and sketch on a real Lean; copilot and dojo up to their probes.

Neither Lean Copilot nor LeanDojo can run without a toolchain, so of these two only the probes and
their requests are tried here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from treewright.cli.portfolio import open_lean_access as opened_access
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.session import async_session
from treewright.lean.session.answers import Diagnostic, ProofState, SessionLost, TacticError
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.verdict import Verdict
from treewright.llm.endpoint import ChatError, Endpoint
from treewright.orchestrator import checkup, strategies
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.scheduling.dispatch import local_backend
from treewright.orchestrator.strategies import Tools
from treewright.orchestrator.types import Goal, Place, Result
from treewright.orchestrator.workers import copilot, dojo, native, search, sketch
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.micro import MicroWorker
from treewright.orchestrator.workers.sketch import SketchWorker, script_of
from treewright.orchestrator.workers.worker import EXCEPTION, UNAVAILABLE, NoProof
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.source import Suggestions

LEAN = pytest.mark.xdist_group("orchestrator-lean")


class Model:
    """A chat endpoint on loopback that gives canned replies and remembers the requests."""

    def __init__(self) -> None:
        self.reply: str | bytes = ""
        self.status = 200
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                model.asked.append(json.loads(self.rfile.read(length)))
                model.keys.append(self.headers.get("Authorization"))
                body = model.reply
                if isinstance(body, str):
                    body = json.dumps({"choices": [{"message": {"content": body}}]}).encode()
                self.send_response(model.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        url = f"http://127.0.0.1:{self.server.server_port}/v1/"
        self.endpoint = Endpoint(base_url=url, model="tiny")


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def sketched(lean: LeanAccess, model: Model, goal: Goal, tickets: Path | None = None) -> Result:
    worker = SketchWorker(lean, model.endpoint, tickets)
    return asyncio.run(worker.run(goal, 120.0))


def verified(lean: LeanAccess, goal: Goal, result: Result) -> bool:
    return asyncio.run(lean.verify(goal, result.tactics, 120.0)).proved


class SharedReplayer:
    """The replay check of the shared Lean processes."""

    def __init__(self, lean: LeanAccess) -> None:
        self._lean = lean

    def text(
        self, original: str, candidate: str, targets: Sequence[str], *, declarations: bool = False
    ) -> Verdict:
        assert not declarations
        return asyncio.run(self._lean.check_text(original, candidate, targets, 300.0))


@LEAN
def test_a_sketch_whose_steps_can_be_filled_in_is_a_proof(
    lean_access: LeanAccess, model: Model
) -> None:
    model.reply = (
        "First we show a step.\n```lean\ntheorem foo : p := by\n"
        "  have step : a + b = b + a := by\n    sorry\n"
        "  have other : 0 < a + 1 := by sorry\n  exact ⟨step, other⟩\n```\nDone."
    )
    goal = Goal(id="g", text="a + b = b + a ∧ 0 < a + 1", context=("a b : Nat",))
    result = sketched(lean_access, model, goal)
    assert result.success, result.error
    assert "sorry" not in "\n".join(result.tactics)
    assert verified(lean_access, goal, result)
    prompt = model.asked[0]["messages"][0]["content"]
    assert goal.shown in prompt
    assert model.asked[0]["model"] == "tiny"


@LEAN
def test_steps_that_stay_open_become_subgoals_and_tickets(
    lean_access: LeanAccess, model: Model, tmp_path: Path
) -> None:
    model.reply = (
        "```\nintro n\nhave hard : ∀ f : Nat → Nat, f n = f 0 := by sorry\n"
        "have easy : n + 0 = n := by sorry\nexact hard id\n```"
    )
    path = tmp_path / "ledger.db"
    goal = Goal(id="my goal", text="∀ n : Nat, n = 0", estimated_difficulty=0.9)
    result = sketched(lean_access, model, goal, path)
    assert not result.success
    assert result.subgoals == ("n : Nat\n⊢ ∀ (f : Nat → Nat), f n = f 0",)
    with Marketplace(path) as marketplace:
        (ticket,) = asyncio.run(marketplace.get_open_tickets(limit=10))
    assert result.metadata["tickets"] == [ticket.ticket_id]
    assert ticket.goal == "∀ (f : Nat → Nat), f n = f 0"
    assert list(ticket.context) == ["n : Nat"]
    assert (ticket.suggested_name, ticket.priority) == ("my_goal_step1", 0.9)


@LEAN
def test_a_lemma_that_somebody_supplied_closes_its_step(
    lean_access: LeanAccess, model: Model, tmp_path: Path
) -> None:
    model.reply = (
        "```\nintro p h\nhave hard : ∃ n : Nat, n * n = 1369 ∧ p := by\n  sorry\nexact hard\n```"
    )
    # With a witness that `micro` does not guess.
    goal = Goal(id="g", text="∀ p : Prop, p → ∃ n : Nat, n * n = 1369 ∧ p")
    path = tmp_path / "ledger.db"
    first = sketched(lean_access, model, goal, path)
    assert not first.success, first.tactics
    (ticket_id,) = first.metadata["tickets"]
    with Marketplace(path, checker=SharedReplayer(lean_access)) as marketplace:
        proof = "refine ⟨37, ?_, h⟩\nrfl"
        asyncio.run(marketplace.complete_ticket(ticket_id, proof, "somebody"))
    second = sketched(lean_access, model, goal, path)
    assert second.success, second.error
    assert "37" in "\n".join(second.tactics)
    assert verified(lean_access, goal, second)


@LEAN
def test_a_sketch_for_a_place_in_a_file(lean_access: LeanAccess, model: Model) -> None:
    source = (
        "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  sorry\n\ntheorem u : True := sorry\n"
    )
    start = source.encode().index(b"sorry")
    hole = (start, start + 5)
    goal = Goal(id="t", text="q ∧ p", place=Place("f", source, "t", (hole,), frozenset({hole})))
    model.reply = "```lean\nhave hq : q := by\n  sorry\nexact ⟨hq, h.1⟩\n```"
    result = sketched(lean_access, model, goal)
    assert result.success, result.error
    assert verified(lean_access, goal, result)


@LEAN
def test_a_sketch_brings_no_command_into_a_file(lean_access: LeanAccess, model: Model) -> None:
    source = 'notation "yes" => True\ntheorem t : yes := by\n  sorry\n'
    start = source.encode().index(b"sorry")
    hole = (start, start + 5)
    goal = Goal(id="t", text="yes", place=Place("f", source, "t", (hole,), frozenset({hole})))
    model.reply = "```lean\nhave : yes := by sorry\nexact this\n```"
    assert sketched(lean_access, model, goal).success
    for behind in ("def two := 1", "end", "private theorem u : True := trivial"):
        model.reply = f"```lean\nexact trivial\n\n{behind}\n```"
        result = sketched(lean_access, model, goal)
        assert not result.success
        assert "command" in (result.error or ""), (behind, result.error)


@LEAN
def test_a_goal_is_what_it_is_called(lean_access: LeanAccess) -> None:
    worker = MicroWorker(lean_access)
    for goal in (
        Goal("a", "True ∨ x = y", ("x : Nat), True ∧ ∀ (y : Nat",)),
        Goal("b", "True := trivial theorem b : True"),
        Goal("c", "True", preamble="theorem treewright_goal : True := trivial\nnamespace X"),
    ):
        result = asyncio.run(worker.run(goal, 20.0))
        assert not result.success, goal
        with pytest.raises(UsageError):
            asyncio.run(lean_access.verify(goal, ["trivial"], 20.0))


@LEAN
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I cannot.", "no script"),
        ("```\nexact nonsense\n```", "does not elaborate"),
        ("```\nnative_decide\n```", "native_decide"),
        (b"<html>", "something else than a chat completion"),
        ("```\ntrivial\n\ntheorem x : 1 = 1 := rfl\n```", "not a sequence of tactics"),
        ("```\n  trivial\nopen Nat\n```", "further left"),
    ],
)
def test_a_useless_answer_is_a_failed_result(
    lean_access: LeanAccess, model: Model, reply: str | bytes, said: str
) -> None:
    model.reply = reply
    result = sketched(lean_access, model, Goal(id="g", text="1 = 2"))
    assert not result.success
    assert said in str(result.error)


def test_an_endpoint_that_refuses_or_is_not_there(
    lean_access: LeanAccess, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sketch.KEY_VARIABLE, "secret")
    monkeypatch.setenv(sketch.URL_VARIABLE, model.endpoint.base_url)
    monkeypatch.setenv(sketch.MODEL_VARIABLE, "tiny")
    model.status = 400
    worker = SketchWorker(lean_access)
    result = asyncio.run(worker.run(Goal(id="g", text="1 = 2"), 60.0))
    assert "answered 400" in str(result.error)
    assert result.metadata["kind"] == UNAVAILABLE
    assert model.keys == ["Bearer secret"]
    sketched(lean_access, model, Goal(id="g", text="1 = 2"))
    assert model.keys[1:] == [None], "the key is for the endpoint of the environment alone"
    nowhere = SketchWorker(lean_access, Endpoint(base_url="http://127.0.0.1:9/v1", model="tiny"))
    result = asyncio.run(nowhere.run(Goal(id="g", text="1 = 2"), 60.0))
    assert "cannot be reached" in str(result.error)
    assert result.metadata["kind"] == UNAVAILABLE


@LEAN
def test_a_sketch_says_what_it_used_and_not_with_which_key(
    lean_access: LeanAccess, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-of-this-endpoint")
    choice = {"message": {"content": "```\n-- sk-of-this-endpoint\ntrivial\n```"}}
    used = {"prompt_tokens": 40, "completion_tokens": 7}
    model.reply = json.dumps({"choices": [choice], "usage": used}).encode()
    model.endpoint = msgspec.structs.replace(model.endpoint, api_key_env="OWN_KEY")
    result = sketched(lean_access, model, Goal(id="g", text="True"))
    assert model.keys == ["Bearer sk-of-this-endpoint"]
    assert result.metadata["usage"]["prompt_tokens"] == 40
    assert result.metadata["usage"]["unpriced_tokens"] == 47
    assert "sk-of-this-endpoint" not in repr(result)


class Ending:
    """Lean that ends at every request; a real one does not end when a test wants it to."""

    pid = None

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Ending]:
        yield self

    async def check_goal(self, *_: object) -> None:
        pass

    async def run(self, work: object) -> None:
        pass

    async def start(self, statement: str) -> SessionLost:
        return SessionLost("the process ended")

    async def check(self, source: str, **_: object) -> SessionLost:
        return SessionLost("the process ended")


def test_that_lean_ended_says_nothing_of_the_goal(model: Model) -> None:
    model.reply = "```\nsimp\n```"
    lean: Any = Ending()
    plain = Goal(id="g", text="1 = 2")
    placed = Goal(id="g", text="p", place=Place("f", "sorry", "t", ((0, 5),)))
    for worker, goal in (
        (MicroWorker(lean), plain),
        (MicroWorker(lean), placed),
        (SketchWorker(lean, model.endpoint), plain),
    ):
        result = asyncio.run(worker.run(goal, 120.0))
        assert result.error == "LeanError: Lean ended: the process ended"
        assert result.metadata["kind"] == EXCEPTION


@pytest.mark.parametrize(
    ("answer", "script"),
    [
        ("```lean\nby\n  simp\n  omega\n```", "simp\nomega"),
        ("```lean4\ntheorem t (n : Nat) :\n    n = n := by\n  rfl\n```", "rfl"),
        (
            "```\n\n  have h : a := by\n    sorry\n  exact h\n```",
            "have h : a := by\n  sorry\nexact h",
        ),
        ("no block", ""),
    ],
)
def test_the_script_in_an_answer(answer: str, script: str) -> None:
    assert script_of(answer) == script


@LEAN
def test_search_finds_a_proof_that_one_tactic_does_not(
    lean_access: LeanAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = search.SearchWorker(lean_access)
    goal = Goal(id="g", text="∀ (p q r : Prop), (p → q) → (q → r) → p → r ∧ q")
    result = asyncio.run(worker.run(goal, 300.0))
    assert result.success, result.error
    assert verified(lean_access, goal, result)
    monkeypatch.setattr(search, "MAX_SIMULATIONS", 30)  # which would not end otherwise
    hopeless = asyncio.run(worker.run(Goal(id="h", text="1 = 2"), 300.0))
    assert not hopeless.success


class Endless:
    """A tactic source with one tactic that runs until it is interrupted."""

    name = "endless"

    def __init__(self) -> None:
        self.asked = threading.Event()

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        self.asked.set()
        text = f"set_option maxHeartbeats 0 in\nrepeat (first | skip | rfl) -- {round_number}"
        return Suggestions((Candidate(text, None, self.name),), complete=False)


@LEAN
def test_a_search_that_is_cancelled_leaves_its_session_usable(
    lean_access: LeanAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Endless()
    monkeypatch.setattr(search, "build_source", lambda settings, **_: source)
    monkeypatch.setattr(async_session, "CANCEL_GRACE_SECONDS", 100.0)  # the machine may be busy

    async def main() -> tuple[int | None, int | None]:
        async with lean_access.session() as session:
            before = session.pid
        goal = Goal(id="g", text="∀ n : Nat, n = n")
        task = asyncio.create_task(search.SearchWorker(lean_access).run(goal, 600.0))
        assert await asyncio.to_thread(source.asked.wait, 120)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        async with lean_access.session() as session:
            assert isinstance(await session.start("1 = 1"), ProofState)
            return before, session.pid

    before, after = asyncio.run(main())
    assert before == after


def test_strategies_that_cannot_run_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ELAN_HOME", raising=False)
    worker = copilot.CopilotWorker(tmp_path)
    assert worker.probe().detail == "not inside a Lake project"
    (tmp_path / "lakefile.toml").write_text('name = "x"\n')
    assert worker.probe().detail == "no Lean toolchain is installed here"
    (tmp_path / "lean-toolchain").write_text("v4.20.0")
    lean = tmp_path / ".elan" / "toolchains" / "leanprover--lean4---v4.20.0" / "bin" / "lean"
    lean.parent.mkdir(parents=True)
    lean.write_text("#!/bin/sh\necho 'Lean (version 4.20.0, Release)'\n")
    lean.chmod(0o755)
    assert "does not require LeanCopilot" in worker.probe().detail
    (tmp_path / "lakefile.toml").write_text('[[require]]\nname = "LeanCopilot"\n')
    assert worker.probe().available
    assert dojo.DojoWorker(tmp_path).probe().available
    checks = {check.name: check for check in checkup.checks(tmp_path)}
    assert checks["sketch"].status == "absent"
    assert sketch.URL_VARIABLE in checks["sketch"].hint
    assert {"micro", "search", "copilot", "dojo"} <= checks.keys()


def test_the_lean_that_was_asked_for_reaches_strategies_of_a_toolchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another directory than the project's. The toolchain is a script that says a version."""
    project, lean = tmp_path / "project", tmp_path / "own" / "bin" / "lean"
    project.mkdir()
    (project / "lakefile.toml").write_text(
        'name = "x"\n[[lean_lib]]\nname = "X"\n[[require]]\nname = "LeanCopilot"\n'
    )
    lean.parent.mkdir(parents=True)
    lean.write_text("#!/bin/sh\necho 'Lean (version 4.20.0, Release)'\n")
    lean.chmod(0o755)
    monkeypatch.setenv("TREEWRIGHT_LEAN", str(lean.parent.parent))
    monkeypatch.chdir(tmp_path)
    config = OrchestratorConfig()
    opened: list[bool] = []

    def refused(project: Path, *, sandbox: bool = False) -> NoReturn:
        opened.append(sandbox)
        raise UsageError("not opened here")

    monkeypatch.setattr(native, "native_host", refused)
    for name in ("copilot", "dojo"):
        for sandbox in (None, True):
            access = opened_access("native", sandbox, local_backend(config), config, project)
            worker = strategies.find(name).make(Tools(access))
            assert worker.probe().available
            with pytest.raises(NoProof, match="not opened here"):
                worker.prove(Goal(id="g", text="True"), 0.0)  # pyright: ignore
        access = opened_access("wasm", None, local_backend(config), config, project)
        said = strategies.find(name).make(Tools(access)).probe()
        assert not said.available
        assert "wasm (asked for)" in said.detail
    assert opened == [False, True] * 2

    (project / "X").mkdir()
    first, second = project / "X" / "Zero.lean", project / "X" / "A.lean"
    first.write_text("theorem a : True := trivial\n")
    second.write_text("import X.Zero\n")
    access = opened_access("native", None, local_backend(config), config, project)
    assert asyncio.run(access.sort_by_imports([second, first])) == [first, second]


@pytest.mark.parametrize("takes_arguments", [True, False])
def test_what_copilot_would_be_asked_and_how_its_answer_is_read(takes_arguments: bool) -> None:
    """With the notes' arguments; without, where the Lean Copilot that is there has none."""
    asked: list[str] = []
    message = Diagnostic("information", "Try this:\n  simp\n  exact h", 1, 0)

    class Session:
        def start(self, statement: str, *, timeout: float = 0) -> ProofState:
            asked.append(statement)
            return ProofState(0, ())

        def run_tactic(self, state, text: str, timeout: float = 0) -> ProofState | TacticError:
            asked.append(text)
            if ":=" in text and not takes_arguments:
                return TacticError("<input>:1:16: expected end of input", "parse")
            found = (message,) if text.startswith("search_proof") else ()
            return ProofState(1, (), found, True)

    goal = Goal(id="g", text="q", context=("h : q",), imports=("Mathlib",))
    script = copilot.search(Session(), goal, 5.0)  # type: ignore[arg-type]
    calls = {
        "select_premises": "select_premises (num := 12)",
        "search_proof": "search_proof (beam := 4) (temperature := 0.2)",
    }
    wanted = [
        text for plain, full in calls.items() for text in (full, plain)[: 2 - takes_arguments]
    ]
    assert asked == ["∀ (h : q), q", "intro h", *wanted]
    assert script == ("intro h", "simp", "exact h")
    assert copilot.CopilotWorker().imports(goal) == ("Mathlib", "LeanCopilot")


def test_how_dojo_tries_tactics(lean: HostSession, tmp_path: Path) -> None:
    """On the bundled Lean: a session is a session."""
    later = time.monotonic() + 120
    goal = Goal(id="g", text="n < n + 1", context=("n : Nat",))
    assert dojo.attempt(lean, goal, later) == ("intro n", "simp")
    text = "theorem t (n : Nat) (h : n < 2) : n < 3 := by\n  sorry\n"
    hole = (text.index("sorry"), text.index("sorry") + 5)
    place = Place("t.lean", text, "t", (hole,), frozenset({hole}))
    assert dojo.attempt(lean, Goal(id="g", text="", place=place), later) == ("omega",)
    with pytest.raises(TimeoutError):
        dojo.attempt(lean, goal, 0.0)
    with pytest.raises(NoProof, match="no tactic closes"):
        dojo.attempt(lean, Goal(id="g", text="1 = 2"), later)
    with pytest.raises(NoProof, match="not inside a Lake project"):
        dojo.DojoWorker(tmp_path).prove(goal, 0.0)


def test_an_error_of_the_endpoint_is_for_people() -> None:
    assert issubclass(ChatError, TreewrightError)
