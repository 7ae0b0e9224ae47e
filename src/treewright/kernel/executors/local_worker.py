"""Loaded by the workers of a local cluster when they start (dask's `preload`)."""

from __future__ import annotations

import os


def dask_setup(worker: object) -> None:
    """Leaves the terminal's foreground group: Ctrl-C is for the coordinator, which ends its
    workers in order. They end by themselves when it is killed."""
    os.setpgrp()
