"""The module that the workers of a local dask cluster load when they start (`preload`)."""

from __future__ import annotations

import os


def dask_setup(worker: object) -> None:
    """Leave the terminal's foreground process group.

    Ctrl-C then reaches only the coordinator, which ends its workers in order. Workers end by
    themselves when the coordinator is killed.
    """
    os.setpgrp()
