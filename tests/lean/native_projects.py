"""Lake projects as a native host sees them: compiled by its own Lean, where Lake puts modules."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

from treewright.lean.native.host import NativeHost


def built(native: NativeHost, root: Path, modules: dict[str, str]) -> NativeHost:
    """The host for a project of these texts, by path and in the order of their imports.

    What lies below `.lake/packages` is compiled as a package of that name.
    """
    (root / "lakefile.toml").write_text('name = "foo"\n')
    libraries: dict[Path, None] = {}
    for name, text in modules.items():
        package = root.joinpath(*Path(name).parts[:3]) if name.startswith(".lake/") else root
        library = package / ".lake" / "build" / "lib"
        libraries[library] = None
        source = root / name
        target = library / source.relative_to(package).with_suffix(".olean")
        source.parent.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        subprocess.run(
            [native.toolchain.lean, "-o", target, source],
            cwd=package,
            env={"LEAN_PATH": ":".join(map(str, libraries))},
            check=True,
            capture_output=True,
            timeout=300,
        )
    packages = [{"name": p.name} for p in sorted((root / ".lake" / "packages").glob("*"))]
    (root / "lake-manifest.json").write_text(json.dumps({"packages": packages}))
    path = ":".join(map(str, libraries))
    host = dataclasses.replace(native, project=root, modules={"LEAN_PATH": path})
    return host.as_it_stands()
