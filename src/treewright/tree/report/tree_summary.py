"""TREE_SUMMARY.md and its pictures: their contents, and the writing of changed files."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.tree.records import layout
from treewright.tree.records.layout import PICTURES, REPORT
from treewright.tree.records.model import Manifest
from treewright.tree.report import headline, tables
from treewright.tree.report.gantt import draw_gantt
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import draw_score_chart
from treewright.tree.report.tree_picture import draw_tree


def write_report(run_dir: Path, manifest: Manifest) -> Path:
    """Write TREE_SUMMARY.md and its pictures.

    Args:
        run_dir: The directory of the run.
        manifest: The state of the run to report.

    Returns:
        The path of TREE_SUMMARY.md.
    """
    facts = Facts.of(run_dir, manifest)
    pictures = {
        layout.TREE_PICTURE: draw_tree(facts),
        layout.SCORE_PICTURE: draw_score_chart(facts),
    }
    for record in manifest.depths:
        picture = draw_gantt(facts, record)
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
    """Return the text of TREE_SUMMARY.md, with links to these pictures."""
    sections = [
        headline.render_headline(facts),
        f"## The tree\n\n![The search tree]({PICTURES}/{layout.TREE_PICTURE})",
        f"![Score by depth]({PICTURES}/{layout.SCORE_PICTURE})",
        headline.render_best_path(facts),
        tables.render_depths(facts),
        tables.render_nodes(facts),
        tables.render_rejections(facts),
        tables.render_costs(facts),
        tables.render_evaluations(facts, PICTURES, pictures),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
