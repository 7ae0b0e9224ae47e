"""The image that Lean starts from: made elsewhere it is the same, and a broken one is no Lean."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from treewright.lean.hosts.wasm import install
from treewright.lean.hosts.wasm.home import IMAGE_FILE, LeanHome
from treewright.lean.session.errors import LeanError
from treewright.lean.session.process import LeanProcess


@pytest.fixture
def elsewhere(home: LeanHome, tmp_path: Path) -> LeanHome:
    """The same Lean with less of a library, its files of another age at another place."""
    copy = tmp_path / "a-longer-name-of-a-directory"
    shutil.copytree(
        home.path / "lib" / "Init", copy / "lib" / "Init", copy_function=shutil.copyfile
    )
    for name in ("lib/Init.olean", "lean.js", "lean.wasm", "lean.symbols"):
        shutil.copyfile(home.path / name, copy / name)
    return LeanHome(copy, home.node)


@pytest.mark.xdist_group("lean-sandbox")
def test_an_image_made_elsewhere_is_the_same_to_the_byte(
    home: LeanHome, elsewhere: LeanHome
) -> None:
    made = elsewhere.path / IMAGE_FILE
    install.make_image(elsewhere, made)
    found = hashlib.sha256(made.read_bytes()).hexdigest()
    expected = hashlib.sha256((home.path / IMAGE_FILE).read_bytes()).hexdigest()
    assert found == expected, "the runtime makes another image: reinstall and set manifest.CONTENTS"


@pytest.mark.xdist_group("lean-sandbox")
def test_an_image_that_ends_early_is_an_error_of_one_line(
    home: LeanHome, elsewhere: LeanHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (home.path / IMAGE_FILE).open("rb") as whole:
        (elsewhere.path / IMAGE_FILE).write_bytes(whole.read(1 << 20))
    # The check of the files would notice; this test is about the steps after it.
    monkeypatch.setattr("treewright.lean.hosts.wasm.manifest.verify_home", lambda _home: None)
    with pytest.raises(LeanError, match="the image ends early"):
        LeanProcess(elsewhere)


def test_other_scripts_of_the_runtime_need_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = install.installed_path()
    changed = tmp_path / "runtime"
    shutil.copytree(install.RUNTIME, changed)
    (changed / "main.js").write_text("// other\n")
    monkeypatch.setattr(install, "RUNTIME", changed)
    assert install.installed_path() != before
