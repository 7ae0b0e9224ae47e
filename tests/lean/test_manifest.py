"""A Lean home that was changed is noticed before it is used, and can be repaired."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.lean.checkup import checks
from treewright.lean.hosts.wasm import install, manifest
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.manifest import HomeChanged, home_digest, verify_home
from treewright.lean.session.process import LeanProcess


@pytest.fixture
def small(tarball: Path) -> LeanHome:
    """A miniature of a home, installed from a miniature of the package."""
    return install.ensure_installed(from_file=tarball)


def _edit(home: LeanHome) -> None:
    (home.path / "lib" / "Init.olean").write_bytes(b"OLEAN")


def _edit_and_hide(home: LeanHome) -> None:
    """Same size, same times: only the time of the change of the inode tells."""
    path = home.path / "lib" / "Init.olean"
    before = path.stat()
    path.write_bytes(b"OLEAN")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _edit_and_record(home: LeanHome) -> None:
    """The manifest is made to agree with the changed file."""
    _edit(home)
    manifest.write_manifest(home.path)


def _add(home: LeanHome) -> None:
    (home.path / "lib" / "Init" / "B.olean").write_bytes(b"b")


def _remove(home: LeanHome) -> None:
    (home.path / "lib" / "Init" / "A.olean").unlink()


def _link(home: LeanHome) -> None:
    path = home.path / "lib" / "Init" / "A.olean"
    path.rename(home.path.parent / "elsewhere")
    path.symlink_to(home.path.parent / "elsewhere")


def _link_directory(home: LeanHome) -> None:
    path = home.path / "lib" / "Init"
    path.rename(home.path.parent / "elsewhere")
    path.symlink_to(home.path.parent / "elsewhere")


def _forget(home: LeanHome) -> None:
    (home.path / manifest.MANIFEST).unlink()


def _scribble(home: LeanHome) -> None:
    (home.path / manifest.MANIFEST).write_bytes(b"[1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_edit, "Init.olean is not what was installed"),
        (_edit_and_hide, "Init.olean is not what was installed"),
        (_edit_and_record, "manifest.json was changed"),
        (_add, "B.olean does not belong there"),
        (_remove, "A.olean is missing"),
        (_link, "A.olean is not a plain file"),
        (_link_directory, "A.olean is missing"),
        (_forget, "manifest.json .*No such file"),
        (_scribble, "cannot read .*manifest.json"),
    ],
)
def test_a_change_is_noticed_wherever_a_home_is_taken(
    small: LeanHome, tarball: Path, change: Callable[[LeanHome], None], message: str
) -> None:
    change(small)
    advice = f"{message}.*; run: treewright lean install --repair"
    for use in (install.find_installed, install.ensure_installed, lambda: LeanProcess(small)):
        with pytest.raises(HomeChanged, match=advice):
            use()
    assert next(iter(checks(None))).status == "failed"
    home, problem = install.repair(from_file=tarball)
    assert problem
    assert verify_home(home.path, full=True) == 6
    assert next(iter(checks(None))).detail == f"6 files verified in {home.path}"
    assert not list(home.path.parent.glob(".lean*"))
    assert install.repair(from_file=Path("not needed")) == (home, "")


def test_what_the_quick_check_cannot_see_the_full_one_does(small: LeanHome) -> None:
    recorded = manifest._load(small.path)
    _edit(small)
    found = manifest._look(small.path)
    lies = {name: manifest._record(recorded[name].sha256, found[name]) for name in found}
    (small.path / manifest.MANIFEST).write_bytes(manifest._encode(lies))
    verify_home(small.path)
    with pytest.raises(HomeChanged, match=r"Init.olean is not what was installed"):
        verify_home(small.path, full=True)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of the files that were read."""
    names: list[str] = []
    original = manifest._read_all

    def counted(home: Path, found: dict[str, os.stat_result]) -> dict[str, str]:
        names.extend(found)
        return original(home, found)

    monkeypatch.setattr(manifest, "_read_all", counted)
    return names


def test_a_touched_file_is_read_once(small: LeanHome, reads: list[str]) -> None:
    reads.clear()
    verify_home(small.path)
    assert reads == []
    (small.path / "lib" / "Init.olean").touch()
    verify_home(small.path)
    assert reads == ["lib/Init.olean"]
    manifest._seen.clear()  # as in another process: the manifest knows
    verify_home(small.path)
    assert reads == ["lib/Init.olean"]


def test_a_cache_that_cannot_be_written_is_checked_all_the_same(
    small: LeanHome, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _: bytes) -> None:
        raise manifest.atomic.describe(OSError(30, "Read-only file system"), path)

    monkeypatch.setattr(manifest.atomic, "write_bytes", refuse)
    reads.clear()
    (small.path / "lean.js").touch()
    verify_home(small.path)
    verify_home(small.path)
    assert reads == ["lean.js"]
    _edit(small)
    with pytest.raises(HomeChanged, match=r"Init.olean"):
        verify_home(small.path)


def test_a_file_being_written_by_another_process_is_no_change(small: LeanHome) -> None:
    (small.path / ".tw-tmp-1-abc").write_bytes(b"half a manifest")
    verify_home(small.path)


def test_the_digest_is_of_the_contents(small: LeanHome) -> None:
    (small.path / "lib" / "Init.olean").touch()
    verify_home(small.path)
    assert home_digest(small.path) == manifest.CONTENTS


def test_a_package_that_unpacks_to_something_else_is_refused(
    tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "CONTENTS", "f" * 64)
    with pytest.raises(install.InstallError, match="gave other files"):
        install.ensure_installed(from_file=tarball)
    assert not install.installed_path().exists()
