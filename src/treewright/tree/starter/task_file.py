"""A task of another program as a commented treewright.toml, which loads and runs as written."""

from __future__ import annotations

import json
import re

from treewright.tree.config import FILL_IN
from treewright.tree.repository import blocks
from treewright.tree.starter.survey import run_script
from treewright.tree.starter.task import Bound, Task
from treewright.tree.starter.template import OWN_SWEEP, quote, quoted_list


def render_task(task: Task) -> str:
    """Return the text of treewright.toml for a task."""
    sections = [
        _head(task),
        _sweep(task),
        *([_tests(task.tests)] if task.tests else []),
        _metric(task),
        *map(_bound, task.bounds),
        *_ideas_and_agents(task),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"


def _head(task: Task) -> str:
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
baseline_csv = {quote(task.path("baseline.csv"))}

# Feeds, as TREEWRIGHT_SEED, the random numbers of the measurement.
seed = {task.seed}

{may_change}\
# What decides. A candidate that changes one of these is rejected.
protected_paths = {quoted_list([*task.protected, task.sweep_path])}
{about_readable}{readable}"""


def _sweep(task: Task) -> str:
    return f"""\
[sweep]
command = {quote(run_script(task.sweep_path, ""))}
timeout_seconds = {task.seconds + 60:g}
{OWN_SWEEP}"""


def _tests(command: str) -> str:
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
    """How often each of several models is asked."""
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
