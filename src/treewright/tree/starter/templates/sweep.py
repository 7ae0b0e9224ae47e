"""The sweep: measures the code of a checkout, one process a config.

Written by `treewright init`. Protect it (`protected_paths`): it decides.

A config is a question. The code that is searched answers it in a separate process, which gets only
the question; the answer comes back over a pipe and is judged in this process, where that code never
runs. So the code can neither change how it is measured nor write results itself.

With `checkout = "root"` this runs among the files of the commit that the search started from, and
the code that is measured is in the directory TREEWRIGHT_CANDIDATE. With `sealed = true` the results
end with a line that can be made only with the key that is read from stdin before anything else.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import hmac
import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
CANDIDATE = os.environ.get("TREEWRIGHT_CANDIDATE")
CODE = Path(CANDIDATE, HERE.relative_to(Path.cwd().resolve())) if CANDIDATE else HERE
"""The directory of this file in the checkout that is measured."""
SEEDED = bool(os.environ.get("TREEWRIGHT_SEED"))
"""Without TREEWRIGHT_SEED nothing is seeded: so a run sees whether its numbers depend on chance."""
ALL_CONFIGS = 24
"""How many questions there are. The README's first search takes 12, and 12 held-out ones."""
SECONDS_A_CONFIG = 60.0
LONGEST_ANSWER = 16 << 20
COLUMNS = ["config_id", "status", "score"]


# -- yours to fill in ---------------------------------------------------------------------


def question(config_id: int, seed: int) -> object:
    """Return the question to the code: any JSON value, without the right answer."""
    return {"config": config_id, "seed": seed}


def answer(asked: object) -> object:
    """Return the answer, from the process of a config: import the code and call it."""
    raise SystemExit("fill in `answer` in the sweep: import your code and call it")


def judge(asked: object, answered: object) -> dict[str, float]:
    """Return the metrics of an answer, a number for each of COLUMNS.

    Raise an error for a wrong answer. An answer can be any JSON value: compute the score here, and
    never take it from the answer.
    """
    raise SystemExit("fill in `judge` in the sweep: what is an answer worth?")


# -- the rest need not be touched ---------------------------------------------------------

LONGEST_REASON = 1000
NO_ANSWER = 70
"""The exit code of a config's process that sends a reason in place of an answer."""


def main() -> None:
    key = sys.stdin.readline().strip() if os.environ.get("TREEWRIGHT_SEALED") else ""
    if not key and os.environ.get("TREEWRIGHT_SEALED"):
        raise SystemExit("there is no key on stdin, with which results are sealed")
    keep_to_ourselves()
    start = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_START") or 0)
    limit = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_LIMIT") or ALL_CONFIGS)
    seed = int(os.environ.get("TREEWRIGHT_SEED") or 0)
    rows = [measure(config_id, seed) for config_id in range(start, min(limit, ALL_CONFIGS))]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    write(Path(os.environ.get("TREEWRIGHT_RESULTS_CSV") or "results.csv"), text.getvalue(), key)


def write(path: Path, text: str, key: str) -> None:
    """Write the results, in place of any file of that name. The last line is the seal."""
    data = text.encode()
    if key:
        data += (
            b"#seal " + hmac.new(key.encode(), data, hashlib.sha256).hexdigest().encode() + b"\n"
        )
    if os.path.lexists(path):
        path.unlink()
    with path.open("xb") as file:
        file.write(data)


def keep_to_ourselves() -> None:
    """On Linux no other process of this user can look into this one from now on, or change it;
    and processes that lose their parent become ours, where `end_all` finds them."""
    if sys.platform == "linux":
        import ctypes

        set_dumpable, set_child_subreaper = 4, 36
        control = ctypes.CDLL(None).prctl
        if control(set_dumpable, 0, 0, 0, 0) or control(set_child_subreaper, 1, 0, 0, 0):
            raise SystemExit("the sweep cannot be kept apart from the code that it measures")


def measure(config_id: int, seed: int) -> dict[str, object]:
    """A row. What goes wrong is its status, and is said in the log."""
    asked = question(config_id, seed)
    try:
        metrics = judge(asked, ask(asked, seed * 1_000_003 + config_id))
        missing = [name for name in COLUMNS[2:] if not is_number(metrics.get(name))]
        if missing:
            raise ValueError(f"{missing[0]} is not a finite number")
    except Exception as problem:
        print(f"config {config_id}: {problem}", file=sys.stderr)
        return {"config_id": config_id, "status": "failed"}
    return {"config_id": config_id, "status": "ok", **metrics}


def is_number(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)  # type: ignore[arg-type]


def ask(asked: object, seed: int) -> object:
    """The answer of a fresh process, which is ended with all that it started."""
    ours, theirs = os.pipe()
    script = str(Path(__file__).resolve())
    command = [sys.executable, "-I", script, "--answer", str(theirs), str(CODE)]
    hidden = ("TREEWRIGHT_RESULTS_CSV", "TREEWRIGHT_SEALED", "TREEWRIGHT_CANDIDATE")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        pass_fds=[theirs],
        cwd=CANDIDATE or Path.cwd(),
        env={**env, "PYTHONHASHSEED": str(seed % 2**32) if SEEDED else "random"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        with child.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(json.dumps(asked).encode())
        data = receive(ours, time.monotonic() + SECONDS_A_CONFIG)
        code = child.wait(timeout=10)
    finally:
        os.close(ours)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        end_all()
    if code == NO_ANSWER:
        raise RuntimeError(" ".join(data.decode(errors="replace").split())[:LONGEST_REASON])
    if code != 0:
        raise RuntimeError(f"its process ended with code {code}")
    return json.loads(data)


def end_all() -> None:
    """Ends what left its process group, until nothing is left."""
    while found := children():
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def children() -> list[int]:
    """Return the children of this process, where the system lists them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def receive(pipe: int, deadline: float) -> bytes:
    """Return an answer, which starts with its length.

    Reading ends with the answer, also if a process keeps the other end of the pipe open.
    """
    data, length = b"", None
    while length is None or len(data) < length:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            raise TimeoutError(f"no answer within {SECONDS_A_CONFIG:g} s")
        some = os.read(pipe, 1 << 16)
        if not some:
            raise EOFError("its process ended without an answer")
        data += some
        if length is None and len(data) >= 8:
            length, data = int.from_bytes(data[:8], "big"), data[8:]
        if max(length or 0, len(data)) > LONGEST_ANSWER:
            raise ValueError("its answer is too long")
    return data


def serve(pipe: int, code: Path) -> None:
    """The process of a config. Files of the checkout come after all else that can be imported:
    a new `random.py` there is not the standard library's."""
    global CODE
    CODE = code
    os.set_inheritable(pipe, False)
    asked = json.load(sys.stdin)
    import site

    extra = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = [str(CODE), str(Path.cwd()), str(HERE)]
    sys.path += [*filter(None, extra), site.getusersitepackages(), *own]
    status = 0
    try:
        data = json.dumps(answer(asked)).encode()
    except (Exception, SystemExit) as problem:
        # Not an answer: the exit code says so, whatever is sent.
        status, said = NO_ANSWER, f"{type(problem).__name__}: {problem}"
        if isinstance(problem, SystemExit) and isinstance(problem.code, str):
            said = problem.code
        else:
            traceback.print_exc()
        data = said.encode(errors="replace")
    with os.fdopen(pipe, "wb") as file:
        file.write(len(data).to_bytes(8, "big") + data)
    sys.exit(status)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
