"""A survey, or a task of another program, as a commented treewright.toml that loads."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from treewright.tree.config import FILL_IN
from treewright.tree.repository import blocks
from treewright.tree.starter.survey import SWEEP, Survey, run_script
from treewright.tree.starter.task import Bound, Task, path_in

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


def render_survey(found: Survey) -> str:
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


def render_task(task: Task) -> str:
    """Return the text of treewright.toml for a task."""
    sections = [
        _task_head(task),
        _task_sweep(task),
        *([_task_tests(task.tests)] if task.tests else []),
        _metric(task),
        *map(_bound, task.bounds),
        *_ideas_and_agents(task),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"


def _task_head(task: Task) -> str:
    if task.has_block:
        may_change = f"""\
# Only what stands between {blocks.START} and {blocks.END} of this file may change.
editable_blocks = {quoted_list([task.program])}

"""
    else:
        may_change = ""
    readable = f"readable_paths = {quoted_list(task.readable)}\n" if task.readable else ""
    about_readable = (
        "# Protected files that models are shown all the same.\n" if task.readable else ""
    )
    return f"""\
# A task of {task.layout}: {task.program} is measured by {task.measured_by}.
# Every key is explained in Treewright's docs/configuration.md; `treewright doctor` checks them.

# Every prompt begins with this.
task = {_long_text(task.instructions)}

# The score of the program as it is now. `treewright tree --make-baseline` makes it.
baseline_csv = {quote(path_in(task.directory, "baseline.csv"))}

# Feeds, as TREEWRIGHT_SEED, the random numbers of the measurement.
seed = {task.seed}

{may_change}\
# What decides. A candidate that changes one of these is rejected.
protected_paths = {quoted_list([*task.protected, task.sweep_path])}
{about_readable}{readable}"""


def _task_sweep(task: Task) -> str:
    return f"""\
[sweep]
command = {quote(run_script(task.sweep_path, ""))}
timeout_seconds = {task.seconds + 60:g}
{OWN_SWEEP}"""


def _task_tests(command: str) -> str:
    return f"""\
# Must exit with 0 before a candidate is measured.
[tests]
command = {quote(command)}
timeout_seconds = 1800"""


def _metric(task: Task) -> str:
    notes = "".join(f"# {line}\n" for line in [*task.notes, *task.noise])
    if task.seeds is not None:
        noise = """\
# So every config is a seed: a candidate is compared with its parent on `seeds` seeds, and before it
# is promoted its gain has to show on `heldout_seeds` others. Fewer seeds cost less and see less.
"""
        setting = f"seeds = {task.seeds}\nheldout_seeds = {task.heldout_seeds}"
    elif task.repeats is None:
        noise = """\
# The same code gives the same number, with other random numbers as well: that is checked when a run
# starts, and for each candidate before it is promoted. If it does not, say `repeats = 5` instead.
"""
        setting = "deterministic = true"
    else:
        noise = """\
# The same code does not give the same number twice: candidate and parent are measured in turns.
# A smaller number is faster and sees less.
"""
        setting = f"repeats = {task.repeats}"
        if task.tolerance is not None:
            setting += (
                "\n# Three standard errors of the noise that was measured.\n"
                f"tolerance = {task.tolerance:.3g}"
            )
    return f"""\
{notes}{noise}[[metrics]]
name = {quote(task.metric)}
direction = {quote(task.direction)}
primary = true
{setting}
# What the score can be at all: one outside is a broken result, and no record.
# min = 0.0
# max = 1.0"""


def _bound(bound: Bound) -> str:
    limits = [f"min = {bound.min:g}"] if bound.min is not None else []
    limits += [f"max = {bound.max:g}"] if bound.max is not None else []
    comment = "".join(f"# {line}\n" for line in bound.comment.splitlines())
    return f"""\
{comment}[[metrics]]
name = {quote(bound.name)}
direction = {quote("minimize" if bound.max is not None else "maximize")}
constraint = true
""" + "\n".join(limits)


def _ideas_and_agents(task: Task) -> list[str]:
    """Return the sections; a program that is not Python cannot be searched without a model."""
    models = f"""\
[[ideas]]
source = "llm"
{_endpoint(task, placeholder=FILL_IN)}
{_weights(task)}
[agents.coder]
backend = "openai"
{_endpoint(task, placeholder=FILL_IN)}"""
    if not task.tunable:
        return [
            "# Single edits (`mutate`) need numbers in a Python program, so a model proposes ideas "
            "and\n# writes them. Others: docs/ideas.md, docs/agents.md.\n" + models
        ]
    values = "numbers and options" if task.options else "numbers"
    lines = models.replace(FILL_IN, "...").split("\n")
    commented = "\n".join(f"# {line}".rstrip() for line in lines)
    return [
        f"""\
# Single edits to the {values} in the program, made offline: a start.
[[ideas]]
source = "mutate"
files = {quoted_list(task.tunable)}{_options(task)}""",
        """\
# Who implements them. `patch` applies the diff that an idea carries and needs no model.
[agents.coder]
backend = "patch\"""",
        "# For ideas in words, from a model or from people: docs/ideas.md, docs/agents.md.\n"
        + commented,
    ]


def _options(task: Task) -> str:
    if not task.options:
        return ""
    lines = [
        f"{quote(name)} = {json.dumps(values, ensure_ascii=False)}"
        for name, values in task.options.items()
    ]
    return "\n\n# Read from comments in the program.\n[ideas.options]\n" + "\n".join(lines)


def _endpoint(task: Task, placeholder: str) -> str:
    address = task.models.address or placeholder
    weights = task.models.weights
    model = max(weights, key=lambda name: weights[name], default=placeholder)
    key = task.models.key_variable or "OPENAI_API_KEY"
    return (
        f"endpoint = {{ base_url = {quote(address)}, model = {quote(model)}, "
        f"api_key_env = {quote(key)} }}"
    )


def _weights(task: Task) -> str:
    """Return the setting with the shares of several models; "" for one model."""
    if len(task.models.weights) < 2:
        return ""
    pairs = ", ".join(f"{quote(name)} = {weight:g}" for name, weight in task.models.weights.items())
    return f"model_weights = {{ {pairs} }}\n"


def _long_text(text: str) -> str:
    if "\n" not in text:
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
    escaped = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", escaped)
    return f'"""\n{escaped}\n"""'
