"""`treewright init`: a first treewright.toml for a repository, and a sweep where there is none.

In: a repository, perhaps with a task that was written for OpenEvolve, ShinkaEvolve, autoresearch or
evo, or a command that prints a number. Out: the text of `treewright.toml` and of
`treewright_sweep.py`. Only `measurement.py` runs the task, in a copy; the rest reads files and git.

The package imports `tree.repository`, `tree.config` and the packages below them, from `tree.ideas`
the literals that `mutate` can edit, and for the measurement from `tree.evaluating`. Read first
`survey.py` (the findings about a repository), `task.py` (a task of another program, which
`evolve_tasks.py` and `printed_number.py` find) and `template.py` (the configuration).
"""

from __future__ import annotations

from treewright.tree.starter.layouts import LAYOUTS, recognise
from treewright.tree.starter.printed_number import task_of_command
from treewright.tree.starter.survey import SWEEP, Survey, survey
from treewright.tree.starter.task import Task, read_template
from treewright.tree.starter.template import render_survey, render_task

__all__ = [
    "LAYOUTS",
    "SWEEP",
    "Survey",
    "Task",
    "read_template",
    "recognise",
    "render_survey",
    "render_task",
    "survey",
    "task_of_command",
]
