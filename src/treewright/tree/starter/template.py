"""A survey of a repository as a commented treewright.toml, which loads as written."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from treewright.tree.config import FILL_IN
from treewright.tree.starter.survey import SWEEP, Survey

OWN_SWEEP = """\
# It runs from a checkout of the root of its own, and only it can have written its results.
checkout = "root"
sealed = true"""
"""The place of a sweep that `init` wrote."""


_FROM_THE_ROOT = """\
# It finds the candidate's code by TREEWRIGHT_CANDIDATE, and runs from a checkout of the root.
checkout = "root\""""

_THEIR_SWEEP = """\
# Run it from a checkout of the root, out of a candidate's reach, once it finds the candidate's
# code in the directory TREEWRIGHT_CANDIDATE (docs/sweep-contract.md):
# checkout = "root\""""


def render(found: Survey) -> str:
    """Return the text of treewright.toml.

    `FILL_IN` stands where only the user knows; no run starts before it is replaced.
    """
    sections = [
        _head(found),
        _sweep(found),
        _tests(found),
        _metrics(found),
        _ideas(found),
        _agents(found),
    ]
    return "\n\n".join(sections) + "\n"


def quote(text: str) -> str:
    """Return a TOML string. A JSON string is one, apart from DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def quoted_list(items: list[str]) -> str:
    """Return a TOML list of strings, on several lines if it is long."""
    one_line = f"[{', '.join(map(quote, items))}]"
    if len(one_line) <= 80:
        return one_line
    return "[\n" + "".join(f"  {quote(item)},\n" for item in items) + "]"


def _head(found: Survey) -> str:
    baseline = found.results_csv or "baseline.csv"
    origin = (
        "Found here: check that the sweep below made it."
        if found.results_csv
        else "Not there yet: `treewright tree --make-baseline` makes it."
    )
    return f"""\
# What to improve, how it is measured, who does the work.
# Every key is explained in Treewright's docs/configuration.md; `treewright doctor` checks them.

# The sweep's results for the code as it is now. {origin}
baseline_csv = {quote(baseline)}

# Feeds the bootstrap intervals and, as TREEWRIGHT_SEED, the sweep.
seed = 0

# A candidate that touches one of these is rejected before anything runs. Name all that
# decides: the sweep and what it imports to measure, its data, the tests. Directories
# count as a whole, * is a wildcard. (The baseline and this file are always protected.)
protected_paths = {quoted_list(found.protected)}"""


def _sweep(found: Survey) -> str:
    if found.sweep_command:
        note = "# Found by its name or by its use of TREEWRIGHT_RESULTS_CSV; check it."
        command = found.sweep_command
    else:
        note = f"# Replace {FILL_IN}. A template: docs/sweep-contract.md."
        for script in found.not_sweeps:
            note += f"\n# {script} is called like a sweep, but writes no results to this path."
        command = FILL_IN
    own = found.sweep_script is not None and PurePosixPath(found.sweep_script).name == SWEEP
    where = OWN_SWEEP if own else _FROM_THE_ROOT if found.finds_candidate else _THEIR_SWEEP
    return f"""\
# Measures a candidate and writes one CSV row per config to the path in
# TREEWRIGHT_RESULTS_CSV: config_id, status ("ok"), and the metrics below. It must honour
# TREEWRIGHT_SWEEP_CONFIG_LIMIT (only config_id < limit), and _START for held-out configs.
{note}
[sweep]
command = {quote(command)}
timeout_seconds = 3600
{where}"""


def _tests(found: Survey) -> str:
    if found.tests_command is None:
        return """\
# A command that must exit with 0 before a candidate is swept. None was found.
# [tests]
# command = "python -m pytest -q"
# timeout_seconds = 1800"""
    return f"""\
# Must exit with 0 before a candidate is swept.
[tests]
command = {quote(found.tests_command)}
timeout_seconds = 1800"""


def _metrics(found: Survey) -> str:
    columns = [(column.name, column.direction) for column in found.columns]
    if columns:
        note = "# Read from the sweep's columns; check the directions and which one is primary."
    else:
        columns = [(FILL_IN, "minimize")]
        note = f"# Replace {FILL_IN} by the name of a column."
    tables = []
    for place, (name, direction) in enumerate(columns):
        rest = "primary = true\nweight = 1.0" if place == 0 else "weight = 0.1"
        tables.append(
            f"[[metrics]]\nname = {quote(name)}\ndirection = {quote(direction)}\n{rest}\n"
            "tolerance = 0.0"
        )
    return f"""\
# Numeric columns of the results. Exactly one is primary. A change counts if the 95 %
# interval of the paired differences excludes zero and their mean exceeds the tolerance
# (in the column's own unit). The primary metric ranks candidates; weights say whether what the
# others lose outweighs what it gains, and break ties.
# A number that is the same whenever it is measured: deterministic = true. One that depends on
# what else the machine does, such as a time: repeats = 3 sweeps candidate and parent in turns.
{note}
""" + "\n\n".join([*tables, *_clocks(found)])


def _clocks(found: Survey) -> list[str]:
    """A candidate that gives itself more time is better for no good reason."""
    return [
        f"""\
# {path} has a time budget of {seconds:g} s, which a candidate can extend. Let the sweep write the
# wall-clock time of a config as a column, and bound it a little above what the baseline needs:
# [[metrics]]
# name = "seconds"
# direction = "minimize"
# constraint = true
# max = {1.2 * seconds + 30 if seconds >= 60 else 1.5 * seconds + 1:g}"""
        for path, seconds in found.clocks.items()
    ]


def _ideas(found: Survey) -> str:
    tables = []
    if found.idea_directory is not None:
        tables.append(f'[[ideas]]\nsource = "directory"\npath = {quote(found.idea_directory)}')
    if found.tunable:
        tables.append(
            "# Single edits to the numbers in these files, made offline. Narrow it down to\n"
            "# where the numbers matter.\n"
            f'[[ideas]]\nsource = "mutate"\nfiles = {quoted_list(found.tunable)}'
        )
    if not tables:
        tables.append(
            f"# Replace {FILL_IN}. Or make a directory with an idea in each .md file:\n"
            '# source = "directory"\n# path = "ideas"\n'
            '[[ideas]]\nsource = "llm"\n'
            f"endpoint = {{ base_url = {quote(FILL_IN)}, model = {quote(FILL_IN)} }}"
        )
    return """\
# Where ideas come from, asked in this order: `directory` (.md files), `mutate`, `command`
# (your generator), `llm` (an OpenAI-compatible endpoint). See docs/ideas.md.
""" + "\n\n".join(tables)


def _agents(found: Survey) -> str:
    if not found.tunable and found.idea_directory is None:
        return f"""\
# Who implements them: a model, since its ideas are words. Others: docs/agents.md.
[agents.coder]
backend = "openai"
endpoint = {{ base_url = {quote(FILL_IN)}, model = {quote(FILL_IN)} }}"""
    return """\
# Who implements them. `patch` applies the diff that an idea carries and needs no model.
# For ideas in plain words use a command-line agent or an endpoint: docs/agents.md.
[agents.coder]
backend = "patch"

# [agents.coder]
# backend = "command"
# preset = "claude"                      # or codex, gemini, aider
#
# [agents.reviewer]
# backend = "openai"
# endpoint = { base_url = "https://...", model = "...", api_key_env = "MY_KEY_VARIABLE" }"""
