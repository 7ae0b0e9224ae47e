"""Three open proofs of a small Lake project, closed. The second half of `make demo`.

Copies examples/queue to a temporary directory (or to TREEWRIGHT_DEMO_DIR) and lets `treewright
prove` work through it, each file behind what it imports. The first call ever fetches a real Lean 4;
after that no network is needed. Exits with 1 unless all three are proved and the files say so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


def main() -> int:
    started = time.monotonic()
    project = copied_project()
    before = open_proofs(project)
    print(f"The Lean project is in {project}; {before} of its proofs are `sorry`\n", flush=True)
    command = ["treewright", "prove", ".", "--in-place"]
    print("$", *command, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json"],
        cwd=project,
        stdout=subprocess.PIPE,
        check=False,
    )
    if not done.stdout.strip():
        print("demo: the proofs could not be searched for, see above", file=sys.stderr)
        return 1
    found = json.loads(done.stdout)
    for file in found["files"]:
        run = project / ".treewright" / "proof_runs" / file["run_id"]
        print(f"\n{(run / 'proved.patch').read_text(encoding='utf-8').rstrip()}")
    seconds = time.monotonic() - started
    print(f"\n{found['proved']} of {before} proved, each checked by another Lean; {seconds:.0f} s")
    return verdict(found["proved"], before, open_proofs(project))


def copied_project() -> Path:
    wanted = os.environ.get("TREEWRIGHT_DEMO_DIR")
    parent = Path(wanted) if wanted else Path(tempfile.mkdtemp(prefix="treewright-demo-"))
    project = parent.resolve() / "queue"
    if project.exists():
        raise SystemExit(f"demo: {project} exists already; remove it or set TREEWRIGHT_DEMO_DIR")
    shutil.copytree(EXAMPLES / "queue", project, ignore=shutil.ignore_patterns(".treewright"))
    return project


def open_proofs(project: Path) -> int:
    texts = [path.read_text(encoding="utf-8") for path in project.rglob("Queue/*.lean")]
    return sum(text.count("sorry") for text in texts)


def verdict(proved: int, wanted: int, left: int) -> int:
    """The exit code, with a word on stderr if the demo did not show what it should."""
    if proved == wanted and not left:
        return 0
    print(f"demo: {proved} of {wanted} proved; still `sorry`: {left}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
