"""The choice of a Lean, and the messages about toolchains that are missing, old or not pinned.

The toolchains here are shell scripts that print a version; tests with a real toolchain are in
tests/lean/conformance, which runs where there is one.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from treewright.kernel.errors import UsageError
from treewright.lean import choice
from treewright.lean.hosts.host import Host, Launch
from treewright.lean.hosts.native import comparator, host_program, toolchain
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.project.module_store import user_secret
from treewright.lean.session.answers import Goal
from treewright.lean.session.errors import LeanError
from treewright.lean.session.process import STARTUP_SECONDS, LeanProcess
from treewright.lean.verify.verdict import kernel_warnings


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def says_version(prefix: Path, version: str) -> Path:
    """A directory that looks like a toolchain."""
    script(prefix / "bin" / "lean", f"echo 'Lean (version {version}, x86_64, Release)'")
    return prefix


@pytest.fixture
def elan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty elan, and no Lean on the path."""
    monkeypatch.setenv("ELAN_HOME", str(tmp_path / "elan"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    (tmp_path / "elan" / "toolchains").mkdir(parents=True)
    return tmp_path / "elan"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "proofs"
    made.mkdir()
    (made / "lakefile.toml").write_text('name = "proofs"\n')
    (made / "lean-toolchain").write_text("leanprover/lean4:v4.20.0\n")
    return made


def install(elan: Path, name: str, version: str) -> Path:
    return says_version(elan / "toolchains" / name, version)


def test_auto_takes_the_toolchain_that_the_project_pins(elan: Path, project: Path) -> None:
    install(elan, "leanprover--lean4---v4.20.0", "4.20.0")
    chosen = choice.choose("auto", project)
    assert (chosen.backend, chosen.project) == ("native", project)
    found = toolchain.find_toolchain(project)
    assert isinstance(found, toolchain.Toolchain)
    assert (found.version, found.name, found.has_comparator) == ((4, 20, 0), "4.20.0", False)


def test_a_toolchain_that_is_not_installed_is_not_fetched(elan: Path, project: Path) -> None:
    chosen = choice.choose("auto", project)
    assert chosen.backend == "wasm"
    assert "run elan toolchain install leanprover/lean4:v4.20.0" in chosen.reason
    with pytest.raises(UsageError, match=r"v4\.20\.0 is not installed"):
        choice.choose("native", project)


def test_outside_a_project_auto_takes_the_bundled_lean(elan: Path, tmp_path: Path) -> None:
    assert choice.choose("auto", tmp_path).reason == "not inside a Lake project"
    assert choice.choose("wasm", tmp_path).reason == "asked for"
    with pytest.raises(UsageError, match="no Lean toolchain is installed here"):
        choice.choose("native", tmp_path)
    with pytest.raises(UsageError, match="choose from auto, wasm, native"):
        choice.choose("other")


def test_a_toolchain_older_than_we_support_is_refused_in_one_line(
    elan: Path, project: Path
) -> None:
    (project / "lean-toolchain").write_text("v4.9.0")  # elan's short form
    install(elan, "leanprover--lean4---v4.9.0", "4.9.0")
    with pytest.raises(UsageError, match=r"^this is Lean 4\.9\.0, and .* needs 4\.14 or newer$"):
        choice.choose("native", project)
    assert choice.choose("auto", project).backend == "wasm"


def test_a_setting_names_the_toolchain(
    elan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(toolchain.VARIABLE, str(says_version(tmp_path / "own", "4.22.1")))
    assert toolchain.require_toolchain(None).version == (4, 22, 1)
    assert choice.choose("native", tmp_path).reason == "asked for, without a Lake project"
    monkeypatch.setenv(toolchain.VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(UsageError, match=r"has no bin/lean; correct it"):
        toolchain.find_toolchain(None)


def test_what_lake_says_about_modules(elan: Path, project: Path) -> None:
    prefix = install(elan, "leanprover--lean4---v4.20.0", "4.20.0")
    found = toolchain.require_toolchain(project)
    with pytest.raises(UsageError, match="has no bin/lake"):
        toolchain.lake_environment(found, project)
    lake = prefix / "bin" / "lake"
    script(lake, 'shift; LEAN_PATH="$PWD/.lake/build/lib" OTHER=x exec "$@"')
    assert toolchain.lake_environment(found, project) == {"LEAN_PATH": f"{project}/.lake/build/lib"}
    # As Lake says it: from the directory of the project, and with the library.
    script(lake, f'shift; LEAN_PATH="././.lake/build/lib:{prefix}/lib/lean" exec "$@"')
    assert toolchain.lake_environment(found, project) == {"LEAN_PATH": f"{project}/.lake/build/lib"}
    script(lake, "echo 'error: unknown key' >&2; exit 1")
    with pytest.raises(UsageError, match=r"lake env fails in .*: error: unknown key"):
        toolchain.lake_environment(found, project)


def test_the_error_about_a_missing_module_suggests_a_remedy_of_the_host(tmp_path: Path) -> None:
    tool = toolchain.Toolchain(tmp_path, (4, 20, 0), "")
    alone, inside = NativeHost(tool), NativeHost(tool, tmp_path / "proofs")
    assert isinstance(alone, Host)
    assert "there is no Lake project" in alone.lacking("unknown module Foo")
    assert "run lake build" in inside.lacking("unknown module Foo")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NativeHost:
    """A host for a project with a module, a package, and one that only looks like a package."""
    root = tmp_path / "proofs"
    places = [root / ".lake" / "build" / "lib"]
    places += [root / ".lake" / "packages" / name / "lib" for name in ("dep", "self")]
    for place, module in zip(places, ("Foo", "Dep", "Own"), strict=True):
        place.mkdir(parents=True)
        (place / f"{module}.olean").write_bytes(b"compiled")
    (root / "Foo.lean").write_text("theorem one : 1 = 1 := rfl\n")
    (root / "lake-manifest.json").write_text('{"packages": [{"name": "dep", "type": "git"}]}')
    said = {"LEAN_PATH": ":".join(map(str, places)), "LD_LIBRARY_PATH": str(places[0])}
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / "state"))
    script(tmp_path / "lean" / "bin" / "lean", 'echo olean > "$2"')
    tool = toolchain.Toolchain(tmp_path / "lean", (4, 20, 0), "")
    (tool.prefix / "lib").mkdir()
    (tool.prefix / "lib" / "Init.olean").write_bytes(b"compiled")
    return NativeHost(tool, root, modules=said).with_trusted_files()


def test_a_judge_gets_nothing_of_the_project(inside: NativeHost) -> None:
    """No libraries to load, and no modules but those of packages that the manifest lists.

    A lakefile may have the project's own compiled below `.lake/packages`.
    """
    assert inside.project is not None
    dep = inside.project / ".lake" / "packages" / "dep" / "lib"
    assert inside.judging().modules == {"LEAN_PATH": str(dep)}
    manifest = inside.project / "lake-manifest.json"
    manifest.write_text('{"packages": [{"name": "self"}]}')
    assert inside.judging().modules == {"LEAN_PATH": str(dep)}  # it was decided before
    manifest.unlink()
    assert inside.with_trusted_files().judging().modules == {"LEAN_PATH": str(dep)}
    assert replace(inside, trusted_files=None).judging().modules == {"LEAN_PATH": ""}


@pytest.mark.parametrize(
    "changed",
    ["lean/lib/Init.olean", "proofs/.lake/packages/dep/lib/Dep.olean", "proofs/Foo.lean"],
)
def test_a_changed_file_of_the_project_or_host_is_noticed(
    inside: NativeHost, tmp_path: Path, changed: str
) -> None:
    """Also if a program restores the file's time: the time of its last change cannot be set."""
    host_program.compiled_host(inside.toolchain)
    assert inside.changed(["Foo"]) == ""
    file = tmp_path / changed
    about, content = file.stat(), file.read_bytes()
    file.write_bytes(content.swapcase())
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert inside.changed(["Foo"]) == str(file)


def test_a_file_added_to_the_search_path_of_a_judge_is_noticed(inside: NativeHost) -> None:
    assert inside.project is not None
    program = host_program.compiled_host(inside.toolchain)
    new = inside.project / ".lake" / "packages" / "dep" / "lib" / "Evil.olean"
    new.write_bytes(b"compiled")
    assert inside.changed([]) == str(new.parent)
    new.unlink()
    assert inside.changed([]) == str(new.parent)  # it was there for a while
    inside = inside.with_trusted_files()
    (program / "Evil.olean").write_bytes(b"compiled")
    assert inside.changed([]) == str(program)


def test_a_judge_is_started_from_the_files_of_the_beginning(inside: NativeHost) -> None:
    """A program of the same user can read the key, and seal another program with it."""
    lean = inside.toolchain.lean
    assert inside.changed([]) == ""
    lean.write_text(lean.read_text() + "\n")
    assert inside.changed([]) == str(lean)
    inside = inside.with_trusted_files()
    program = host_program.compiled_host(inside.toolchain)
    module = program / "TreewrightHost.olean"
    module.write_text("evil")
    (program / "seal").write_text(host_program._seal(program, user_secret()))
    assert host_program.changed_host(inside.toolchain) == ""
    assert inside.changed([]) == str(module)
    lean.unlink()
    with pytest.raises(LeanError, match="the toolchain cannot be read"):
        inside.launch()


def test_the_kernel_is_part_of_what_a_certificate_says_of_lean(inside: NativeHost) -> None:
    """It is in a library; one that changed is read again."""
    place = inside.toolchain.prefix / "lib" / "lean"
    place.mkdir()
    seen = {inside.digest()}
    for name in ("libleanshared.so", "libleanshared.dylib", "libc++.so.1"):
        (place / name).write_bytes(b"kernel")
        seen.add(inside.digest())
        (place / name).write_bytes(b"another")
        seen.add(inside.digest())
    assert len(seen) == 7


def test_other_directories_in_the_place_of_believed_ones_are_noticed(
    inside: NativeHost, tmp_path: Path
) -> None:
    host_program.compiled_host(inside.toolchain)
    library = inside.toolchain.prefix / "lib" / "lean"
    library.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "back").symlink_to(inside.toolchain.prefix / "lib")
    inside = inside.with_trusted_files()
    (library / "Linked").symlink_to(outside)
    assert inside.changed([]) == str(library)
    inside = inside.with_trusted_files()
    (outside / "Evil.olean").write_bytes(b"compiled")  # a link is followed, as Lean does it
    assert inside.changed([]) == str(library / "Linked")
    inside = inside.with_trusted_files()
    assert inside.changed([]) == ""
    while outside.stat().st_ctime_ns <= library.stat().st_ctime_ns:
        outside.touch()  # until the clock of the files goes on
    inside = inside.with_trusted_files()
    aside = library.rename(tmp_path / "aside")
    library.mkdir()
    library.rmdir()
    aside.rename(library)
    assert inside.changed([]) in (str(library.parent), str(library))


def test_modules_that_nothing_rests_on_may_change(inside: NativeHost) -> None:
    assert inside.project is not None
    host_program.compiled_host(inside.toolchain)
    (inside.project / "Foo.lean").write_text("")
    assert inside.changed([]) == ""
    assert inside.changed(["Gone"]) == "Gone"


def test_certificates_name_modules_by_what_they_are(inside: NativeHost) -> None:
    (module,) = inside.digests(["Foo"])
    assert module.text == hashlib.sha256(b"theorem one : 1 = 1 := rfl\n").hexdigest()
    assert module.compiled == hashlib.sha256(b"compiled").hexdigest()


@pytest.mark.parametrize("part", ["olean.private", "olean.server", "ir", "ir.sig"])
def test_all_parts_of_a_module_count(inside: NativeHost, part: str) -> None:
    """Since Lean 4.22 a module may be compiled to several files."""
    assert inside.project is not None
    host_program.compiled_host(inside.toolchain)
    own = inside.project / ".lake" / "build" / "lib" / f"Foo.{part}"
    (before,) = inside.digests(["Foo"])
    own.write_bytes(b"proofs")
    assert inside.changed(["Foo"]) == str(own)
    (after,) = inside.digests(["Foo"])
    assert (before.text, before.compiled != after.compiled) == (after.text, True)
    believed = inside.toolchain.prefix / "lib" / f"Init.{part}"
    believed.write_bytes(b"proofs")
    inside = inside.with_trusted_files()
    assert inside.changed(["Foo"]) == ""
    believed.write_bytes(b"other proofs")
    assert inside.changed(["Foo"]) == str(believed)


def test_compiling_the_program_is_no_part_of_the_time_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a minute, and on a busy machine several: then the first call found no Lean."""
    ahead = [0.0]
    clock = time.monotonic
    monkeypatch.setattr(
        "treewright.lean.session.process.time.monotonic", lambda: clock() + ahead[0]
    )
    says = 'echo "{\\"ready\\":true}" >&"$TREEWRIGHT_REPLY_FD"; cat'

    class Compiling(NativeHost):
        def launch(self) -> Launch:
            ahead[0] += 10 * STARTUP_SECONDS
            return Launch(["/bin/bash", "-c", says], str(tmp_path), {})

    process = LeanProcess(Compiling(toolchain.Toolchain(tmp_path, (4, 20, 0), "")))
    try:
        assert process.alive
    finally:
        process.kill("done")


@pytest.fixture
def counting(tmp_path: Path) -> tuple[toolchain.Toolchain, Path]:
    """A toolchain that compiles anything to nothing, and a file with a line for each time."""
    log = tmp_path / "compiled"
    prefix = tmp_path / "lean"
    script(prefix / "bin" / "lean", f'echo once >> {log}; echo olean > "$2"')
    return toolchain.Toolchain(prefix, (4, 20, 0), "said"), log


def test_a_judges_program_that_was_changed_in_the_cache_is_not_started(
    counting: tuple[toolchain.Toolchain, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / "state"))
    tool, log = counting
    place = host_program.compiled_host(tool)
    assert "compiling the native host for Lean 4.20.0" in caplog.text  # the wait is announced
    assert host_program.compiled_host(tool) == place
    assert log.read_text() == "once\n"
    assert caplog.text.count("compiling") == 1
    poisons = {
        "TreewrightHost.olean": "evil",
        "main.lean": "def main : IO Unit := pure ()\n",
        "Init.olean": "it would be found before the library's",
    }
    for number, (name, text) in enumerate(poisons.items(), start=2):
        (place / name).write_text(text)
        assert host_program.compiled_host(tool) == place
        assert log.read_text() == number * "once\n"
        assert not (place / name).exists() or (place / name).read_text() != text
    assert "is not what was put there" in caplog.text


def test_without_a_key_the_program_is_compiled_for_this_process(
    counting: tuple[toolchain.Toolchain, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("no directory")
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TREEWRIGHT_STATE", str(tmp_path / "state"))
    tool, log = counting
    place = host_program.compiled_host(tool)
    assert (place / "TreewrightHost.olean").is_file()
    assert host_program.compiled_host(tool) == place
    assert log.read_text() == "once\n"
    assert not (tmp_path / "cache").exists()


def test_the_comparator_is_asked_where_there_is_one(tmp_path: Path) -> None:
    """By a script in the place of `lake`: no Lean of that age is at hand."""
    old = NativeHost(toolchain.Toolchain(tmp_path, (4, 34, 1), ""))
    assert "comes with Lean 4.35" in comparator.unavailable(old)
    new = NativeHost(toolchain.Toolchain(tmp_path, (4, 35, 0), ""))
    assert comparator.unavailable(new) == ""
    asked = tmp_path / "asked"
    script(new.toolchain.lake, f'cat "$2" Challenge.lean Solution.lean > {asked}; exit 0')
    assert (
        comparator.objection(
            new, "theorem t : p := sorry", "theorem t : p := h", ["t"], ["propext"]
        )
        == ""
    )
    text = asked.read_text()
    assert '"theorem_names": ["t"], "permitted_axioms": ["propext"]' in text
    assert text.endswith("theorem t : p := sorrytheorem t : p := h")
    script(new.toolchain.lake, "echo 'theorem t has another type' >&2; exit 1")
    assert "theorem t has another type" in comparator.objection(new, "", "", ["t"], [])


@pytest.mark.parametrize(
    ("lean", "warned"),
    [("4.14.0", True), ("4.33.0", True), ("4.33.1", False), ("4.34.0", True), ("4.34.1", False)],
)
def test_kernels_that_are_known_to_be_unsound_are_named(lean: str, warned: bool) -> None:
    assert bool(kernel_warnings(lean)) == warned


def test_a_host_without_a_hash_function_sends_what_the_hash_is_of() -> None:
    import hashlib

    goal = Goal("g", "p", hashed="⊢ text")
    assert goal.hash == hashlib.sha256("⊢ text".encode()).hexdigest()
    assert goal.hashed == ""


@pytest.mark.parametrize(
    ("pin", "is_said"),
    [
        ("leanprover/lean4:v4.14.0", True),
        (f"leanprover/lean4:v{choice.BUNDLED_VERSION}", False),
        ("", False),
    ],
)
def test_a_project_for_another_lean_than_the_bundled_one_is_told(
    tmp_path: Path, pin: str, is_said: bool, treewright
) -> None:
    """A proof by the bundled Lean may use tactics that the project's Lean lacks."""
    (tmp_path / "lakefile.toml").write_text('name = "p"\n')
    (tmp_path / "lean-toolchain").write_text(f"{pin}\n")
    (tmp_path / "A.lean").write_text("theorem a : True := trivial\n")
    done = treewright("lean", "check", "A.lean", "--lean", "wasm", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("asks for Lean 4.14.0, the bundled one is" in done.stderr) == is_said
