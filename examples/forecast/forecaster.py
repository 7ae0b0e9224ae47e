"""The process the model runs in: a question per line on stdin, an answer per line on stdout.

Files are closed to the model: it may load its code and nothing else, so a forecast cannot
be read from the data or the results. An audit hook stops the mistake and the shortcut; it
is no prison for a determined attacker.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

CODE = (".py", ".pyc", ".so", ".zip")


def _only_code(event: str, arguments: tuple) -> None:
    if event == "open":
        path, _mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or not (isinstance(path, str) and path.endswith(CODE)):
            raise PermissionError(f"the model may not open files: {path}")
    elif event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork"):
        raise PermissionError("the model may not start programs")


def main() -> None:
    seed = sys.argv[1]
    answers_to, sys.stdout = sys.stdout, sys.stderr  # what the model prints is no answer
    sys.dont_write_bytecode = True
    sys.path.append(str(Path(__file__).resolve().parent))
    sys.addaudithook(_only_code)

    from demand import CannotForecast, Day, forecast

    for line in sys.stdin:
        random.seed(f"{seed} {line}")  # the same draws whatever else was asked
        question = json.loads(line)
        history = [Day(*day) for day in question["history"]]
        ahead = [Day(*day) for day in question["ahead"]]
        try:
            answer = {"forecast": forecast(history, ahead)}
        except CannotForecast as refusal:
            answer = {"declined": str(refusal)}
        print(json.dumps(answer), file=answers_to, flush=True)


if __name__ == "__main__":
    main()
