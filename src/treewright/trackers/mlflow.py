"""Write a run to MLflow: a parent run, child runs, and metrics by step.

The parent is found by a tag with its key, a child by a tag with its name, so a second call changes
nothing. Existing parameters and points stay unchanged. A complete child has a tag; a child that a
killed writer left incomplete is completed.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from treewright.kernel.errors import MissingExtra, TreewrightError, UsageError
from treewright.kernel.storage import atomic, file_lock
from treewright.kernel.storage.user_directories import state_directory
from treewright.trackers.tracked_run import Child, TrackedRun

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

KEY = "treewright.key"
CHILD = "treewright.child"
WRITTEN = "treewright.written"
_PARENT = "mlflow.parentRunId"
_NAME = "mlflow.runName"
_STATES = {"running": "RUNNING", "finished": "FINISHED", "failed": "FAILED"}
_PAGE = 1000
_MAX_PARAM = 500
_MAX_TAG = 4000
_MAX_ERROR = 700
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "ERROR"}


@dataclass(frozen=True, slots=True)
class Written:
    """The run's id at the server, and the numbers of new children and points."""

    run_id: str
    experiment_id: str
    children: int
    points: int


def write(run: TrackedRun, *, tracking_uri: str | None = None, experiment: str) -> Written:
    """Bring MLflow up to date.

    Args:
        run: The run to write.
        tracking_uri: The MLflow server (default: from MLflow's environment).
        experiment: The name of the MLflow experiment.

    Raises:
        TreewrightError: MLflow refused a request.
    """
    client = _client(tracking_uri)
    from mlflow.exceptions import MlflowException

    try:
        # Two writers on this machine do not both create the run.
        directory = state_directory() / "trackers"
        atomic.make_directory(directory)
        with file_lock.holding(directory / f"{run.key}.lock"):
            found = client.get_experiment_by_name(experiment)
            if found is not None and found.lifecycle_stage != "active":
                raise UsageError(
                    f"the MLflow experiment {experiment!r} was deleted; give another --experiment"
                )
            found_id = found.experiment_id if found else client.create_experiment(experiment)
            return _Writer(client, found_id).write(run)
    except MlflowException as error:
        raise TreewrightError(f"MLflow refused: {_one_line(error)}") from None


class _Writer:
    """Writes into one MLflow experiment."""

    def __init__(self, client: MlflowClient, experiment_id: str) -> None:
        self._client = client
        self._experiment = experiment_id

    def write(self, run: TrackedRun) -> Written:
        """Write the run, its missing points, and its new or incomplete children."""
        there = self._client.search_runs([self._experiment], f"tags.`{KEY}` = '{run.key}'")
        tags = {KEY: run.key, "treewright.kind": run.kind}
        parent = there[0] if there else self._create(run.name, tags, run.began)
        run_id = parent.info.run_id
        self._log(parent, run.params, {}, run.tags)
        points = self._series(run_id, run.series)
        known = {child.data.tags[CHILD]: child for child in self._children(run_id)}
        written = sum(self._child(run_id, child, known.get(child.key)) for child in run.children)
        self._settle(parent, _STATES[run.state], run.ended)
        return Written(run_id, self._experiment, written, points)

    def _child(self, parent: str, child: Child, found: Run | None) -> bool:
        """Write a child. Return False if it is complete; later decisions are in its tags."""
        tags = {**child.tags, WRITTEN: "yes"}
        if found is not None and all(
            found.data.tags.get(_tag(name)) == text[:_MAX_TAG] for name, text in tags.items()
        ):
            return False
        if found is None:
            found = self._create(child.name, {CHILD: child.key, _PARENT: parent}, child.began)
        is_new = WRITTEN not in found.data.tags
        self._log(found, child.params, child.numbers if is_new else {}, child.tags)
        self._settle(found, _STATES[child.state], child.ended)
        self._client.set_tag(found.info.run_id, WRITTEN, "yes")  # last: the child is complete
        return True

    def _series(self, run_id: str, series: Mapping[int, Mapping[str, float]]) -> int:
        """Write the missing points, and return their number."""
        from mlflow.entities import Metric

        names = sorted({name for numbers in series.values() for name in numbers})
        there = {
            name: {point.step for point in self._client.get_metric_history(run_id, name)}
            for name in names
        }
        missing = [
            Metric(name, value, _now(), step)
            for step, numbers in series.items()
            for name, value in numbers.items()
            if step not in there[name] and math.isfinite(value)
        ]
        for start in range(0, len(missing), _PAGE):
            self._client.log_batch(run_id, metrics=missing[start : start + _PAGE])
        return len(missing)

    def _log(
        self,
        run: Run,
        params: Mapping[str, Any],
        numbers: Mapping[str, float],
        tags: Mapping[str, str],
    ) -> None:
        from mlflow.entities import Metric, Param, RunTag

        there = run.data
        new = {_tag(name): text[:_MAX_TAG] for name, text in tags.items()}
        self._client.log_batch(
            run.info.run_id,
            [
                Metric(name, value, _now(), 0)
                for name, value in numbers.items()
                if name not in there.metrics and math.isfinite(value)
            ],
            [
                Param(name, str(value)[:_MAX_PARAM])
                for name, value in params.items()
                if name not in there.params and value is not None
            ],
            [RunTag(name, text) for name, text in new.items() if there.tags.get(name) != text],
        )

    def _settle(self, run: Run, state: str, ended: str | None) -> None:
        if run.info.status == state:
            return
        if state == "RUNNING":
            self._client.update_run(run.info.run_id, status=state)
        else:
            self._client.set_terminated(run.info.run_id, state, _milliseconds(ended))

    def _create(self, name: str, tags: Mapping[str, str], began: str | None) -> Run:
        named = {_NAME: name[:_MAX_PARAM], **tags}
        return self._client.create_run(self._experiment, _milliseconds(began), named)

    def _children(self, parent: str) -> Iterator[Run]:
        token: str | None = None
        while True:
            page = self._client.search_runs(
                [self._experiment], f"tags.`{_PARENT}` = '{parent}'", max_results=_PAGE,
                page_token=token,
            )  # fmt: skip
            yield from (run for run in page if CHILD in run.data.tags)
            token = page.token
            if not token:
                return


def _client(tracking_uri: str | None) -> MlflowClient:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise MissingExtra("MLflow", "mlflow") from None
    try:
        return MlflowClient(tracking_uri=tracking_uri)
    except MlflowException as error:
        raise UsageError(f"MLflow cannot use this tracking URI: {_one_line(error)}") from None
    except ImportError as error:  # a database needs the complete package
        raise UsageError(
            f"this tracking URI needs the whole of MLflow ({error}): pip install mlflow, or give "
            "the address of a tracking server"
        ) from None


def _tag(name: str) -> str:
    return f"treewright.{name}" if not name.startswith("treewright.") else name


def _milliseconds(at: str | None) -> int | None:
    return round(1000 * datetime.fromisoformat(at).timestamp()) if at else None


def _now() -> int:
    return round(1000 * time.time())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_MAX_ERROR]
