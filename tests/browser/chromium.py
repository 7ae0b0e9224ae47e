"""A Chromium for the tests, without root: an installed one, or one from npm, fetched once.

The npm package `@sparticuz/chromium` carries a headless Chromium with the libraries that a
bare system lacks, compressed with brotli. It is kept in the user's cache, verified, unpacked
with Node's own zlib. Only tests and `make screenshots` need it.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from treewright.kernel.storage.user_directories import cache_directory
from treewright.lean.hosts.wasm.home import find_node

PACKAGE = "@sparticuz/chromium"
VERSION = "153.0.0"
INTEGRITY = (
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/"
    "EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
)
INSTALLED = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--headless=shell",
    "--force-color-profile=srgb",
]

_UNPACK = """
const fs = require("fs"), zlib = require("zlib"), { pipeline } = require("stream/promises");
const [from, to] = process.argv.slice(1);
pipeline(fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to))
  .catch((error) => { console.error(error.message); process.exit(1); });
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{own}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """A program and the environment that it needs."""

    path: Path
    env: dict[str, str]


def find() -> Chromium:
    """An installed Chromium, or the fetched one. Says clearly why there is none."""
    if INSTALLED.is_file():
        return Chromium(INSTALLED, {})
    home = _fetched()
    env = {"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_FILE": str(home / "fonts.conf")}
    return Chromium(home / "chromium", env)


@contextmanager
def launched() -> Iterator[Browser]:
    """A running browser."""
    found = find()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.path, args=FLAGS, env={**os.environ, **found.env}
        )
        try:
            yield browser
        finally:
            browser.close()


def _fetched() -> Path:
    home = cache_directory() / "chromium" / VERSION
    if (home / "chromium").is_file():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "chromium").is_file():
            try:
                _fetch(home)
            except (OSError, subprocess.SubprocessError, tarfile.TarError, KeyError) as error:
                raise RuntimeError(
                    f"the browser tests need Chromium, and {PACKAGE}@{VERSION} could not be had "
                    f"from npm: {error}. Install Debian's chromium, or make a registry reachable"
                ) from error
    return home


def _fetch(home: Path) -> None:
    staging = home.with_name(f".{VERSION}.{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    node = find_node()
    tarball = _packed(node, staging)
    digest = hashlib.sha512(tarball.read_bytes()).digest()
    if "sha512-" + base64.b64encode(digest).decode() != INTEGRITY:
        raise OSError(f"what npm gave is not {PACKAGE}@{VERSION}: its sha512 differs")
    with tarfile.open(tarball, "r:gz") as package:
        for name in ("chromium.br", "al2023.tar.br", "fonts.tar.br"):
            source = package.extractfile(f"package/bin/{name}")
            if source is None:
                raise KeyError(name)
            with source, (staging / name).open("wb") as file:
                shutil.copyfileobj(source, file)
            unpacked = staging / name.removesuffix(".br")
            subprocess.run([node, "-e", _UNPACK, staging / name, unpacked], check=True)
            (staging / name).unlink()
    for archive in ("al2023.tar", "fonts.tar"):
        _extract(staging / archive, staging)
        (staging / archive).unlink()
    (staging / "fonts.conf").write_text(
        _FONTS.format(own=home / "fonts", cache=home / "font-cache"), encoding="utf-8"
    )
    (staging / "chromium").chmod(0o755)
    tarball.unlink()
    staging.rename(home)


def _extract(archive: Path, target: Path) -> None:
    """Plain files only; early versions of Python 3.11 have no filter that sees to it."""
    with tarfile.open(archive) as files:
        for member in files:
            source = files.extractfile(member) if member.isfile() else None
            if source is None or ".." in Path(member.name).parts:
                continue
            place = target / member.name.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            with source, place.open("wb") as file:
                shutil.copyfileobj(source, file)


def _packed(node: Path, directory: Path) -> Path:
    """The package as npm fetches it, with the user's own settings."""
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(npm)] if npm.is_file() else ["npm"]
    done = subprocess.run(
        [*command, "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(directory)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = list(directory.glob("*.tgz"))
    if done.returncode != 0 or len(found) != 1:
        raise OSError(" ".join(done.stderr.split())[-300:] or "npm pack gave no file")
    return found[0]
