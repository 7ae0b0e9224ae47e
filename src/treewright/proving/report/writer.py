"""The report of a proof run: its text, section by section, and its files."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.storage import atomic
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.llm.usage import describe_usage
from treewright.proving import layout
from treewright.proving.layout import PLOTS, REPORT
from treewright.proving.measures.aggregation import aggregation
from treewright.proving.measures.gratification import gratification, root_series
from treewright.proving.report.facts import GoalFacts, RunFacts
from treewright.proving.report.pictures import pictures


def write_report(run_dir: Path) -> Path:
    """Write `report.md` and `plots/` from the files of a run; return the path of the report."""
    facts = RunFacts.read(run_dir)
    return write_files(run_dir, render(facts, set(drawn := pictures(facts))), drawn)


def render(facts: RunFacts, drawn: set[str]) -> str:
    """Return the text of the report. `drawn` are the names of the pictures."""
    parts = [
        headline(facts),
        goals(facts) if facts.goals else "No goal has been opened yet.",
        run_pictures(PLOTS, drawn),
        measures(facts),
        *(_goal(goal, PLOTS, drawn) for goal in facts.goals),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_files(directory: Path, text: str, drawn: dict[str, str]) -> Path:
    """Write a report and its pictures, and remove the other pictures."""
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


_MOST_TACTICS = 12
_LONGEST_PROOF = 20_000


def headline(facts: RunFacts) -> str:
    """Return the title and the table of the whole run."""
    record, goals = facts.record, facts.goals
    proved = sum(goal.status == "proved" for goal in goals)
    still_open = sum(goal.verdict is None for goal in goals)
    rows = [
        ["goals proved", f"{proved:,} of {len(goals):,}"],
        ["mode", escape(record.settings.searcher)],
        ["seed", str(record.settings.seed)],
        ["simulations allowed for a goal", f"{record.settings.simulations:,}"],
        ["iterations", f"{len(facts.iterations):,}"],
        ["attempts in Lean", f"{facts.outcomes.total():,}"],
        ["Lean", escape(f"{record.lean.version} ({record.lean.backend})")],
        ["started", escape(record.created_at)],
    ]
    if facts.spent.answers:
        used = describe_usage(facts.spent.answers, facts.spent.usage)
        rows.insert(-2, ["model", escape(used)])
    text = f"# Proof run {escape(record.run_id)}\n\n{table(('', ''), rows, 'lr')}"
    if still_open:
        text += f"\n\n{numbers.count(still_open, 'goal')} without a verdict: the run is not over."
    return text


def goals(facts: RunFacts) -> str:
    """Return the table with a row for each goal."""
    header = (
        "goal", "status", "iterations", "attempts", "nodes", "time", "in Lean", "why it stopped",
    )  # fmt: skip
    rows = [_goal_row(goal) for goal in facts.goals]
    return f"## Goals\n\n{table(header, rows, 'llrrrrrl')}"


def _goal_row(goal: GoalFacts) -> list[str]:
    last = goal.iterations[-1] if goal.iterations else None
    share = goal.lean_share
    verdict = goal.verdict
    why = " ".join(filter(None, (verdict.stop, verdict.detail))) if verdict else ""
    return [
        code(goal.name),
        escape(goal.status),
        f"{len(goal.all_iterations):,}",
        f"{sum(len(turn.attempts) for turn in goal.all_iterations):,}",
        f"{last.counters.nodes:,}" if last else "1",
        numbers.seconds(goal.seconds),
        "–" if share is None else f"{100 * share:.0f} %",
        escape(why),
    ]


def _goal(goal: GoalFacts, folder: str, drawn: set[str]) -> str:
    parts = [f"## {escape(goal.name)}: {escape(goal.status)}"]
    if goal.opened is not None:
        parts.append(fenced(goal.opened.statement))
    verdict = goal.verdict
    if verdict is not None and verdict.proof:
        used = ", ".join(code(axiom) for axiom in verdict.axioms) or "none"
        what = "Proof" if verdict.status == "proved" else "Script, not accepted as a proof"
        if verdict.status == "false":
            what = "Proof of the negation"
        parts += [f"{what} (axioms: {used}):", fenced(verdict.proof)]
    if goal.negation:
        ended = f", ended by {code(verdict.negation)}" if verdict and verdict.negation else ""
        turns = numbers.count(len(goal.negation), "iteration")
        parts.append(f"Search for the negation: {turns}{ended}.")
    if goal.without:
        ended = f", ended by {code(verdict.retry)}" if verdict and verdict.retry else ""
        turns = numbers.count(len(goal.retry), "iteration")
        names = ", ".join(map(code, goal.without))
        parts.append(f"Retry without {names}: {turns}{ended}.")
    for name, words in (
        (layout.root_value_plot(goal.number), "Provability of the root"),
        (layout.growth_plot(goal.number), "Growth"),
    ):
        if name in drawn:
            parts.append(f"![{words}]({folder}/{name})")
    tactics = goal.tactics_that_worked().most_common()
    if tactics:
        shown = sorted(tactics, key=lambda item: (-item[1], item[0]))[:_MOST_TACTICS]
        rows = [[code(tactic), f"{count:,}"] for tactic, count in shown]
        more = len(tactics) - len(shown)
        parts.append(table(("tactic that worked", "times"), rows, "lr"))
        if more > 0:
            parts.append(f"and {numbers.count(more, 'other tactic')}.")
    return "\n\n".join(parts)


def run_pictures(folder: str, drawn: set[str]) -> str:
    """Return the section with the pictures of the whole run."""
    shown = (
        (layout.OUTCOMES_PLOT, "Attempts by outcome"),
        (layout.AGENTS_PLOT, "Turns by agent"),
        (layout.INTERVENTIONS_PLOT, "Interventions"),
    )
    found = [f"![{words}]({folder}/{name})" for name, words in shown if name in drawn]
    return "\n\n".join(["## The run as a whole", *found]) if found else ""


def measures(facts: RunFacts) -> str:
    """Return the section on delayed gratification and, with agents, on aggregation."""
    searched = [goal for goal in facts.goals if goal.iterations]
    if not searched:
        return ""
    seed = facts.record.settings.seed
    rows = [_gratification_row(goal, seed) for goal in searched]
    header = (
        "goal", "dips", "gain over dip", "mean of ratios", "p (deeper pays more)",
        "with the solving jump",
    )  # fmt: skip
    parts = ["## Measures", "### Delayed gratification", table(header, rows, "lrrrrr")]
    if facts.agents:
        header = ("goal", "neighbours", "alike", "by chance", "z", "p")
        parts += [
            "### Aggregation",
            table(header, [_aggregation_row(goal, seed) for goal in searched], "lrrrrr"),
        ]
    return "\n\n".join(parts)


def _gratification_row(goal: GoalFacts, seed: int) -> list[str]:
    found = gratification(root_series(goal.iterations), seed=seed)
    whole = gratification(root_series(goal.iterations, settled=True), seed=seed)
    return [
        code(goal.name),
        f"{len(found.excursions):,}",
        defined(found.ratio, found.undefined),
        numbers.value(_rounded(found.mean_ratio)),
        numbers.value(_rounded(found.p)),
        defined(whole.ratio, whole.undefined),
    ]


def _aggregation_row(goal: GoalFacts, seed: int) -> list[str]:
    found = aggregation(goal.iterations, seed=seed)
    chance = "–"
    if found.null_mean is not None:
        chance = f"{found.null_mean:.2f} [{found.null_low:.2f}, {found.null_high:.2f}]"
    return [
        code(goal.name),
        f"{found.pairs:,}",
        defined(found.share, found.undefined),
        chance,
        numbers.value(_rounded(found.z)),
        numbers.value(_rounded(found.p)) if found.undefined is None else escape(found.undefined),
    ]


def defined(number: float | None, undefined: str | None) -> str:
    """Return a number as text, or the reason for which there is none."""
    return escape(undefined or "–") if number is None else numbers.value(_rounded(number))


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.3g}")


def fenced(text: str) -> str:
    """Return a code block of Lean that no text inside can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text[:_LONGEST_PROOF])
    return f"{fence}lean\n{shown}\n{fence}"
