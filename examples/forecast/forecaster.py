"""The process the model runs in: questions as JSON on stdin, answers as JSON on stdout.

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
    questions = json.load(sys.stdin)
    answers_to, sys.stdout = sys.stdout, sys.stderr  # what the model prints is no answer
    random.seed(int(sys.argv[1]))
    sys.dont_write_bytecode = True
    sys.path.append(str(Path(__file__).resolve().parent))
    sys.addaudithook(_only_code)

    from demand import CannotForecast, Day, forecast

    answers = []
    for cuts in questions:
        try:
            answers.append(
                {
                    "forecasts": [
                        forecast(
                            [Day(*day) for day in cut["history"]],
                            [Day(*day) for day in cut["ahead"]],
                        )
                        for cut in cuts
                    ]
                }
            )
        except CannotForecast as refusal:
            answers.append({"declined": str(refusal)})
    json.dump(answers, answers_to)


if __name__ == "__main__":
    main()
