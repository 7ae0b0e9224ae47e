"""What answers used, in a file that anything may have happened to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treewright.kernel.errors import StorageError
from treewright.llm.usage import Usage
from treewright.llm.usage_log import Answer, UsageLog, append


def test_a_log_goes_on_where_others_ended(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    first = UsageLog(path)
    assert (first.answers, first.usage, path.exists()) == (0, Usage(), False)
    first.add(Usage(3, 4, 0.5))
    first.add(Usage())  # an endpoint that does not say
    second = UsageLog(path)
    second.add(Usage(1, 1, 0.25, 2))
    assert (second.answers, second.usage) == (3, Usage(4, 5, 0.75, 2))
    again = UsageLog(path)
    assert (again.answers, again.usage) == (3, Usage(4, 5, 0.75, 2))


@pytest.mark.parametrize(
    "line",
    [
        b'{"prompt_tokens":-9,"cost_usd":-5.0}',
        b'{"prompt_tokens":1000000000000,"completion_tokens":100000000000000000000000}',
        b'{"cost_usd":1e400}',
        b'{"cost_usd":NaN}',
        b'{"prompt_tokens":true}',
        b"nonsense",
        b"\xff",
        b"[" * 200_000,
    ],
)
def test_impossible_usage_is_not_counted(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "usage.jsonl"
    UsageLog(path).add(Usage(3, 4, 0.5))
    with path.open("ab") as file:
        file.write(line + b"\n")
    log = UsageLog(path)
    assert log.usage == Usage(3, 4, 0.5)
    log.add(Usage(-1, 10**15, float("nan")))
    assert log.usage == UsageLog(path).usage == Usage(3, 4, 0.5)


def test_an_answer_behind_a_torn_line_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    path.write_bytes(b'{"prompt_tokens":3}\n{"prompt_tok')
    append(path, Answer(prompt_tokens=4))
    assert UsageLog(path).usage == Usage(7)


def test_a_log_that_cannot_be_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    log = UsageLog(path)
    os.mkfifo(path)
    for use in (lambda: log.add(Usage(1)), lambda: UsageLog(path)):
        with pytest.raises(StorageError, match=r"usage\.jsonl") as error:
            use()
        assert "\n" not in str(error.value)
    assert log.usage == Usage()
