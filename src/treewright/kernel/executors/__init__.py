"""Executors: running requests in this thread, in threads, or on the workers of a cluster.

Requests enter an `Executor`; a `Done` for each leaves, in any order. An executor of another package
is registered as a `Backend` under the entry-point group `treewright.executors`:

    import contextlib

    from treewright.kernel.executors import Backend, ThreadExecutor


    @contextlib.contextmanager
    def open_threads(options):
        yield lambda work: ThreadExecutor(work, options.capacity)


    backend = Backend(open_threads)

Imports the rest of the kernel only. Read first: `protocol.py`, `backends.py`, `threads.py`.
"""

from treewright.kernel.executors.backends import Backend, ExecutorOptions
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.executors.protocol import (
    Done,
    Executor,
    NotBegun,
    Stop,
    Worker,
    WorkerLost,
    WorkerUnfit,
    current_stop,
    stoppable_by,
)
from treewright.kernel.executors.threads import ThreadExecutor

__all__ = [
    "Backend",
    "Done",
    "Executor",
    "ExecutorOptions",
    "InlineExecutor",
    "NotBegun",
    "Stop",
    "ThreadExecutor",
    "Worker",
    "WorkerLost",
    "WorkerUnfit",
    "current_stop",
    "stoppable_by",
]
