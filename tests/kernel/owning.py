"""Owners of a lease in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import until

OWNER = """
import sys
from pathlib import Path
from treewright.kernel.errors import LeaseLost
from treewright.kernel.storage.journal import Journal
from treewright.kernel.storage.lease import Lease
place, stale, force = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "force"
lease = Lease.acquire(place / "lease", stale_seconds=stale, force=force)
guard = lease.check if len(sys.argv) < 5 else (lambda: None)
writer = Journal(place / "events.jsonl", lease.epoch, guard)
writer.append([b'{"type":"lease","epoch":%d}' % lease.epoch])
print(lease.epoch, flush=True)
for command in sys.stdin:
    try:
        writer.append([b'{"type":"fact","epoch":%d}' % lease.epoch])
        print("written", flush=True)
    except LeaseLost as error:
        print("lost", error, flush=True)
lease.release()
"""


class Process:
    """The owner of a lease in a separate process, controlled line by line."""

    def __init__(self, place: Path, stale: float = 60.0, *options: str) -> None:
        arguments = options or ("",)
        self.child = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(place), str(stale), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.epoch = int(self.hear())

    def hear(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def write(self) -> str:
        assert self.child.stdin is not None
        self.child.stdin.write("write\n")
        self.child.stdin.flush()
        return self.hear()

    def signal(self, number: signal.Signals) -> None:
        self.child.send_signal(number)
        if number == signal.SIGSTOP:
            stat = Path(f"/proc/{self.child.pid}/stat")
            until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()
