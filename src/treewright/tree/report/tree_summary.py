"""Puts the report together and writes the files that changed."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.tree.records import layout
from treewright.tree.records.layout import PICTURES, REPORT
from treewright.tree.records.model import Manifest
from treewright.tree.report import costs, depths, evaluations, headline, nodes, rejections
from treewright.tree.report.gantt import gantt
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import score_chart
from treewright.tree.report.tree_picture import tree_picture


def write_report(run_dir: Path, manifest: Manifest) -> Path:
    """Writes TREE_SUMMARY.md and the pictures beside it; returns the path of the former."""
    facts = Facts.of(run_dir, manifest)
    pictures = {
        layout.TREE_PICTURE: tree_picture(facts),
        layout.SCORE_PICTURE: score_chart(facts),
    }
    for record in manifest.depths:
        picture = gantt(facts, record)
        if picture is not None:
            pictures[layout.gantt_picture(record.depth)] = picture
    atomic.make_directory(run_dir / PICTURES)
    atomic.sweep_temporaries(run_dir / PICTURES)
    for name, picture in pictures.items():
        atomic.write_if_changed(run_dir / PICTURES / name, picture)
    summary = run_dir / REPORT
    atomic.write_if_changed(summary, render(facts, sorted(pictures)))
    return summary


def render(facts: Facts, pictures: list[str]) -> str:
    """The text of TREE_SUMMARY.md, given which pictures there are."""
    sections = [
        headline.section(facts),
        f"## The tree\n\n![The search tree]({PICTURES}/{layout.TREE_PICTURE})",
        f"![Score by depth]({PICTURES}/{layout.SCORE_PICTURE})",
        headline.best_path(facts),
        depths.section(facts),
        nodes.section(facts),
        rejections.section(facts),
        costs.section(facts),
        evaluations.section(facts, PICTURES, pictures),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
