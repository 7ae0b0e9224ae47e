"""A project's modules: order, cache, what goes wrong. With a compiler that only joins texts."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.lean.projects import small_project
from treewright.lean.checkup import ProjectModules, read_project_modules
from treewright.lean.hosts.wasm.compiler import WasmCompiler
from treewright.lean.project import module_store
from treewright.lean.project.included_files import IncludedFile
from treewright.lean.project.lakefile import Options
from treewright.lean.project.module_store import Header, ModuleStore
from treewright.lean.project.project import Compilation, Compiled, CompileError, Project
from treewright.lean.project.workspace import open_workspace
from treewright.lean.session.errors import MissingModule


class Joiner:
    """`compile` gives the texts of a module and of all it imports; one with `wrong` in it fails,
    one with `lost` ends its process."""

    version = "1"

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.compiled: list[str] = []
        self.closed = 0

    def has(self, module: str) -> bool:
        return module == "Foo.Taken"

    def headers(self, texts: Sequence[str]) -> list[Header]:
        found = [re.findall(r"^import (\S+)", text, re.MULTILINE) for text in texts]
        return [Header(("Init", *names)) for names in found]

    def compile(
        self,
        module: str,
        text: str,
        options: Options,
        imports: Iterable[Compiled],
        files: Sequence[IncludedFile],
    ) -> Compilation:
        self.tried.append(module.removeprefix("Foo."))
        if "wrong" in text:
            raise CompileError("line 1: wrong")
        if "lost" in text:
            raise CompileError("Lean ended", fault=True)
        self.compiled.append(module.removeprefix("Foo."))
        parts = [*(f"({c.name})" for c in imports), *(f.data.decode() for f in files), text]
        return Compilation("\n".join(parts).encode(), "it is open" if "open" in text else "")

    def close(self) -> None:
        self.closed += 1


DIAMOND = {
    "A": "-- a\n",
    "B": "import Foo.A\n",
    "C": "import Foo.A\nimport Std.Data.HashMap\n",
    "D": "import Foo.B\nimport Foo.C\n",
    "E": "import Foo.D\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small_project(tmp_path / "foo", **DIAMOND)


def project(
    root: Path, joiner: Joiner | None = None, said: list[str] | None = None
) -> tuple[Project, Joiner]:
    workspace = open_workspace(root)
    assert workspace is not None
    compiler = joiner or Joiner()
    announce = (said if said is not None else []).append
    kept = ModuleStore(root.parent / "cache")
    return Project(workspace, compiler, kept, announce), compiler


def names(found: Iterable[Compiled]) -> str:
    return "".join(c.name.removeprefix("Foo.") for c in found)


def test_each_module_comes_once_after_its_imports(root: Path) -> None:
    opened, compiler = project(root)
    assert names(opened.modules_for(["Foo.E", "Init"])) == "ABCDE"
    assert compiler.compiled == ["A", "B", "C", "D", "E"]
    assert compiler.closed == 1  # a process as large as Lean does not stay
    assert names(opened.modules_for(["Foo.C"])) == "AC"


def test_another_process_finds_everything_compiled(root: Path) -> None:
    project(root)[0].modules_for(["Foo.E"])
    opened, compiler = project(root)
    assert names(opened.modules_for(["Foo.E"])) == "ABCDE"
    assert compiler.compiled == []


def test_a_change_compiles_only_the_modules_that_depend_on_it(root: Path) -> None:
    project(root)[0].modules_for(["Foo.E"])
    (root / "Foo" / "C.lean").write_text("import Foo.A\n-- changed\n")
    opened, compiler = project(root)
    opened.modules_for(["Foo.E"])
    assert compiler.compiled == ["C", "D", "E"]
    (root / "Foo" / "C.lean").write_text(DIAMOND["C"])
    opened, compiler = project(root)
    opened.modules_for(["Foo.E"])
    assert compiler.compiled == []


def test_options_and_the_version_of_lean_count(root: Path) -> None:
    project(root)[0].modules_for(["Foo.A"])
    newer = Joiner()
    newer.version = "2"
    project(root, newer)[0].modules_for(["Foo.A"])
    assert newer.compiled == ["A"]
    lakefile = root / "lakefile.toml"
    lakefile.write_text(f"{lakefile.read_text()}leanOptions = {{autoImplicit = false}}\n")
    opened, compiler = project(root)
    opened.modules_for(["Foo.A"])
    assert compiler.compiled == ["A"]


def test_an_open_project_keeps_its_modules_and_reports_changes(root: Path) -> None:
    opened, _ = project(root)
    (before,) = opened.modules_for(["Foo.A"])
    (root / "Foo" / "A.lean").write_text("-- another\n")
    assert opened.modules_for(["Foo.A"]) == (before,)
    assert opened.changed(["Foo.A"]) == opened.changed() == "Foo.A"
    assert opened.changed(["Foo.B"]) == ""


def test_a_module_with_an_error_gives_one_line_and_others_compile(root: Path) -> None:
    (root / "Foo" / "B.lean").write_text("import Foo.A\nwrong\n")
    opened, compiler = project(root)
    with pytest.raises(
        MissingModule,
        match=r"^Foo.B does not compile: line 1: wrong \(imported by Foo.D, by Foo.E\)$",
    ):
        opened.modules_for(["Foo.E"])
    assert names(opened.modules_for(["Foo.C"])) == "AC"
    assert "B" not in compiler.compiled


def test_an_error_in_a_module_is_cached_and_a_fault_is_not(root: Path) -> None:
    (root / "Foo" / "B.lean").write_text("import Foo.A\nwrong\n")
    (root / "Foo" / "C.lean").write_text("import Foo.A\nlost\n")
    first, _ = project(root)
    problems = [first.problem_of("Foo.B"), first.problem_of("Foo.C")]
    second, compiler = project(root)
    assert [second.problem_of("Foo.B"), second.problem_of("Foo.C")] == problems
    assert compiler.tried == ["C"]
    (root / "Foo" / "A.lean").write_text("-- another a\n")
    third, compiler = project(root)
    assert third.problem_of("Foo.B") == problems[0]
    assert compiler.tried == ["A", "B"]


def test_missing_modules_and_cycles_are_named(root: Path) -> None:
    (root / "Foo" / "C.lean").write_text("import Foo.D\n")
    (root / "Foo" / "B.lean").write_text("import Bar.Gone\n")
    opened, _ = project(root)
    gone = r"^Bar.Gone is neither of Lean's own .* project foo \(imported by Foo.B\)$"
    with pytest.raises(MissingModule, match=gone):
        opened.modules_for(["Foo.B"])
    (root / "Foo" / "B.lean").write_text(DIAMOND["B"])
    ring = r"^a cycle of imports: Foo.C imports Foo.D imports Foo.C$"
    with pytest.raises(MissingModule, match=ring):
        project(root)[0].modules_for(["Foo.C"])
    assert names(opened.modules_for(["Foo.A"])) == "A"


def test_a_poisoned_file_of_the_cache_is_not_taken(root: Path) -> None:
    opened, _ = project(root)
    first, second = opened.modules_for(["Foo.B"])
    cache = root.parent / "cache"
    place = cache / first.key[:2] / f"{first.key}.module"
    other = cache / second.key[:2] / f"{second.key}.module"
    good = place.read_bytes()
    label, _, data = good.partition(b"\n")
    for bad in (b"", label, label + b"\n" + data + b"!", data, other.read_bytes()):
        place.write_bytes(bad)
        said: list[str] = []
        again, compiler = project(root, said=said)
        assert again.modules_for(["Foo.A"])[0].data == first.data
        assert compiler.compiled == ["A"]
        assert any("is compiled again" in line for line in said)
        assert place.read_bytes() == good


def test_a_pipe_in_the_cache_is_not_waited_for(root: Path) -> None:
    opened, _ = project(root)
    opened.modules_for(["Foo.A"])
    (kept,) = (root.parent / "cache").glob("??/*.module")
    kept.unlink()
    os.mkfifo(kept)
    said: list[str] = []
    again, compiler = project(root, said=said)
    assert names(again.modules_for(["Foo.A"])) == "A"
    assert compiler.compiled == ["A"]
    assert any("a pipe, not a file" in text for text in said)
    third, compiler = project(root)
    assert names(third.modules_for(["Foo.A"])) == "A"
    assert compiler.compiled == []


def test_a_cache_entry_with_a_foreign_seal_is_compiled_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker knows the key of a module, and labels other bytes in the same format."""
    (honest,) = project(root)[0].modules_for(["Foo.A"])
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TREEWRIGHT_STATE", str(tmp_path / "of the stranger"))
        ModuleStore(root.parent / "cache").write(honest.key, "Foo.A", b"evil")
    said: list[str] = []
    again, compiler = project(root, said=said)
    assert again.modules_for(["Foo.A"]) == (honest,)
    assert compiler.compiled == ["A"]
    assert any("is not what was put there: Foo.A is compiled again" in line for line in said)


def test_imports_that_somebody_else_put_into_the_cache_are_not_taken(root: Path) -> None:
    project(root)[0].modules_for(["Foo.B"])
    (cached,) = (
        path for path in (root.parent / "cache").glob("*/*.header") if b"Foo.A" in path.read_bytes()
    )
    good = cached.read_bytes()
    sealed, _, _ = good.partition(b"\n")
    nothing = b'{"imports":["Init"],"problem":""}'
    for forged in (nothing, sealed + b"\n" + nothing):
        cached.write_bytes(forged)
        assert names(project(root)[0].modules_for(["Foo.B"])) == "AB"
        assert cached.read_bytes() == good


def test_an_entry_without_a_seal_is_compiled_again_without_a_word(root: Path) -> None:
    (honest,) = project(root)[0].modules_for(["Foo.A"])
    place = root.parent / "cache" / honest.key[:2] / f"{honest.key}.module"
    label = {"format": 1, "key": honest.key, "module": "Foo.A", "digest": honest.digest}
    place.write_bytes(json.dumps(label).encode() + b"\n" + honest.data)
    said: list[str] = []
    again, compiler = project(root, said=said)
    again.modules_for(["Foo.A"])
    assert compiler.compiled == ["A"]
    assert said == ["compiling Foo.A"]


def test_the_key_of_the_seals_is_the_users_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / "state"))
    project(root)[0].modules_for(["Foo.A"])
    kept = tmp_path / "state" / "module-cache.key"
    first = kept.read_bytes()
    assert (len(first), kept.stat().st_mode & 0o777) == (32, 0o600)
    assert not any(first in p.read_bytes() for p in (root.parent / "cache").rglob("*.*"))
    for spoil in (lambda: kept.chmod(0o644), lambda: kept.write_bytes(b""), kept.unlink):
        before = kept.read_bytes()
        spoil()
        again, compiler = project(root)
        again.modules_for(["Foo.A"])
        assert compiler.compiled == ["A"]  # sealed by one that others may know
        assert kept.stat().st_mode & 0o777 == 0o600
        assert kept.read_bytes() != before
        again, compiler = project(root)
        again.modules_for(["Foo.A"])
        assert compiler.compiled == []


def test_without_a_writable_key_modules_are_not_cached_and_one_warning_is_given(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / "file" / "state"))
    for _ in range(2):
        said: list[str] = []
        opened, compiler = project(root, said=said)
        assert names(opened.modules_for(["Foo.B"])) == names(opened.modules_for(["Foo.B"])) == "AB"
        assert compiler.compiled == ["A", "B"]
        assert [line for line in said if not line.startswith("compiling ")] == said[:1]
        assert said[0].startswith("compiled modules are not kept: cannot write ")
    assert not (root.parent / "cache").exists()


def test_two_threads_compile_a_shared_module_once(root: Path) -> None:
    entered = threading.Barrier(2, timeout=60)
    shared = Joiner()

    def need() -> None:
        opened, _ = project(root, shared)
        entered.wait()
        opened.modules_for(["Foo.E"])

    threads = [threading.Thread(target=need) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(shared.compiled) == ["A", "B", "C", "D", "E"]


def test_a_module_with_the_name_of_leans_own_is_refused(root: Path) -> None:
    (root / "Foo" / "Taken.lean").write_text("-- mine\n")
    (root / "Foo" / "F.lean").write_text("import Foo.Taken\n")
    opened, compiler = project(root)
    with pytest.raises(MissingModule) as error:
        opened.modules_for(["Foo.F"])
    assert str(error.value) == (
        "Foo.Taken has the name of a module of Lean's own, which it would import: rename it "
        "(imported by Foo.F)"
    )
    assert compiler.compiled == []


def test_the_cache_drops_the_least_recently_used_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ModuleStore(tmp_path / "real", b"secret")
    kept.write("aa1", "A", bytes(1000))
    kept.write("bb2", "B", bytes(1000))
    for path, age in ((kept._path("aa1"), 100), (kept._path("bb2"), 50)):
        os.utime(path, (age, age))
    assert kept.read("aa1", "A") is not None  # used now
    monkeypatch.setattr(module_store, "MOST_BYTES", 2600)
    kept.write("cc3", "C", bytes(1000))
    assert [kept.read(k, n) is not None for k, n in (("aa1", "A"), ("bb2", "B"), ("cc3", "C"))] == [
        True, False, True,
    ]  # fmt: skip


def test_a_cache_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ModuleStore(tmp_path / "link", b"secret").write("aa1", "A", b"bytes")
    assert ModuleStore(tmp_path / "real", b"secret").read("aa1", "A") == b"bytes"


def test_the_state_of_compiled_modules_is_read_without_lean(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "Foo" / "B.lean").write_text("import Foo.A\nwrong\n")
    monkeypatch.setattr(WasmCompiler, "version", Joiner.version)
    monkeypatch.setattr(WasmCompiler, "has", Joiner.has)
    kept = ModuleStore(root.parent / "cache")
    assert read_project_modules(root, kept) == ProjectModules(untried=5)
    opened, _ = project(root)
    opened.modules_for(["Foo.C"])
    assert opened.problem_of("Foo.D")
    found = read_project_modules(root / "Foo", kept)
    assert (found.compiled, found.untried) == (2, 1), "A and C; E was not looked at"
    assert list(found.wrong) == ["Foo.B", "Foo.D"]
    assert found.wrong["Foo.D"].endswith("(imported by Foo.D)")
