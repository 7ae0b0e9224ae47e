"""Write the patch and the summary of a check, and the files that a GitHub runner names."""

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
    """Write all files below `here`, and return the findings with the path of the patch."""
    directory = here / DIRECTORY
    hide_from_git(directory)
    patch_file = directory / PATCH
    if patch:
        atomic.write_bytes(patch_file, patch.encode())
        findings = msgspec.structs.replace(findings, patch=(DIRECTORY / PATCH).as_posix())
    else:
        patch_file.unlink(missing_ok=True)  # the patch of an earlier check

    def append(path: str, text: str) -> None:
        """Append to a file that other steps of the workflow also write."""
        with atomic.storage_errors(Path(path)), Path(path).open("ab") as file:
            file.write(text.encode())

    text = summary(findings, patch)
    atomic.write_bytes(directory / SUMMARY, text.encode())
    if path := environment.get(SUMMARY_VARIABLE):
        append(path, text)
    if path := environment.get(OUTPUTS_VARIABLE):
        # Only numbers and our own file name, so that no text of a file can add another output.
        values = {**findings.counts, "patch": findings.patch}
        append(path, "".join(f"{name}={value}\n" for name, value in values.items()))
    return findings
