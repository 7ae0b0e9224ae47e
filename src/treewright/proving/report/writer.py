"""Puts a proof run's report together and writes the files that changed."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.proving.layout import PLOTS, REPORT
from treewright.proving.report import sections
from treewright.proving.report.facts import RunFacts
from treewright.proving.report.pictures import pictures


def write_report(run_dir: Path) -> Path:
    """Derives `report.md` and `plots/` from `run.json` and `trace.jsonl`; returns the former."""
    facts = RunFacts.read(run_dir)
    return write_files(run_dir, render(facts, set(drawn := pictures(facts))), drawn)


def render(facts: RunFacts, drawn: set[str]) -> str:
    """The text of the report, given which pictures there are."""
    parts = [
        sections.headline(facts),
        sections.goals(facts) if facts.goals else "No goal has been opened yet.",
        sections.run_pictures(PLOTS, drawn),
        sections.measures(facts),
        sections.each_goal(facts, PLOTS, drawn),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_files(directory: Path, text: str, drawn: dict[str, str]) -> Path:
    """A report and its pictures; pictures of earlier reports that are not in it are removed."""
    plots = directory / PLOTS
    atomic.make_directory(plots)
    atomic.sweep_temporaries(plots)
    for name, picture in drawn.items():
        atomic.write_if_changed(plots / name, picture)
    for old in plots.glob("*.svg"):
        if old.name not in drawn:
            old.unlink(missing_ok=True)
    report = directory / REPORT
    atomic.write_if_changed(report, text)
    return report
