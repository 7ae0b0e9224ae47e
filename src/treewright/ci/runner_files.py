"""What a check leaves behind: its patch and summary, and the files that a GitHub runner names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from treewright.ci.findings import Findings
from treewright.ci.summary import summary
from treewright.kernel.storage import atomic
from treewright.kernel.storage.run_directory import STATE_DIR, hide_from_git
from treewright.proving.layout import PATCH

DIRECTORY = Path(STATE_DIR) / "ci"
SUMMARY = "summary.md"
OUTPUTS_VARIABLE = "GITHUB_OUTPUT"
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def write_findings(
    findings: Findings, patch: str, here: Path, environment: Mapping[str, str]
) -> Findings:
    """The findings, with the place of their patch below `here` if there is one."""
    directory = here / DIRECTORY
    hide_from_git(directory)
    where = directory / PATCH
    if patch:
        atomic.write_bytes(where, patch.encode())
        findings = msgspec.structs.replace(findings, patch=(DIRECTORY / PATCH).as_posix())
    else:
        where.unlink(missing_ok=True)  # that of an earlier check
    text = summary(findings, patch)
    atomic.write_bytes(directory / SUMMARY, text.encode())
    if path := environment.get(SUMMARY_VARIABLE):
        _append(Path(path), text)
    if path := environment.get(OUTPUTS_VARIABLE):
        # Numbers and a name of ours: nothing that a file or goal says can become another output.
        values = {**findings.counts, "patch": findings.patch}
        _append(Path(path), "".join(f"{name}={value}\n" for name, value in values.items()))
    return findings


def _append(path: Path, text: str) -> None:
    """Other steps write to it too."""
    with atomic.storage_errors(path), path.open("ab") as file:
        file.write(text.encode())
