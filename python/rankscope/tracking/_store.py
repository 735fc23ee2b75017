"""Where runs are kept: through the user's MLflow where it is installed, else through a small client of our own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from rankscope.tracking import _jobs_run

T = TypeVar("T")

# What a server takes at once.
MAX_METRICS = 1000
MAX_PARAMS = 100
MAX_TAGS = 100


class Store(Protocol):
    uri: str

    def create_run(
        self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]
    ) -> tuple[str, str]:
        """Ids of the run and of its experiment."""

    def begin_run(self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]) -> str:
        """Makes the run and, where there is such a thing, the active one of this process."""

    def end_run(self, run_id: str, status: str) -> None: ...

    def log_metrics(self, run_id: str, metrics: Mapping[str, float], step: int, unix_ms: int) -> None: ...

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None: ...

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None: ...

    def tags(self, run_id: str) -> dict[str, str]: ...

    def delete_tag(self, run_id: str, key: str) -> None: ...

    def log_artifact(self, run_id: str, path: str, to: str | None) -> None: ...

    def log_artifacts(self, run_id: str, path: str, to: str | None) -> None: ...

    def flush(self) -> None:
        """Returns when nothing waits to be sent."""


def find() -> Store:
    try:
        import mlflow
        from mlflow import MlflowClient
    except ImportError:
        from rankscope.tracking._rest import RestStore

        return RestStore(os.environ.get("MLFLOW_TRACKING_URI", ""))
    return MlflowStore(mlflow, MlflowClient())


class MlflowStore:
    """Only the run that this process starts by itself is MLflow's active one. To a run that others share, everything
    is said by its id: MLflow would set its status, and end it with this process."""

    def __init__(self, mlflow: Any, client: Any) -> None:
        self._mlflow = mlflow
        self._client = client
        self.uri: str = mlflow.get_tracking_uri()

    def create_run(
        self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]
    ) -> tuple[str, str]:
        from mlflow.tracking.context.registry import resolve_tags

        experiment_id = self._experiment(experiment)
        if experiment_id is None:
            from mlflow.tracking.fluent import _get_experiment_id

            experiment_id = _get_experiment_id()
        run = self._client.create_run(experiment_id, run_name=run_name, tags=resolve_tags(dict(tags)))
        return run.info.run_id, run.info.experiment_id

    def begin_run(self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]) -> str:
        run = self._mlflow.start_run(
            experiment_id=self._experiment(experiment), run_name=run_name, tags=dict(tags)
        )
        run_id: str = run.info.run_id
        return run_id

    def _experiment(self, name: str | None) -> str | None:
        if name is None:
            return None
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            experiment_id: str = found.experiment_id
            return experiment_id
        try:
            made: str = self._client.create_experiment(name)
        except self._mlflow.MlflowException:
            # Another process was faster, or the name is refused.
            found = self._client.get_experiment_by_name(name)
            if found is None:
                raise
            made = found.experiment_id
        return made

    def end_run(self, run_id: str, status: str) -> None:
        active = self._mlflow.active_run()
        with _jobs_run.ending(run_id):
            if active is not None and active.info.run_id == run_id:
                self._mlflow.end_run(status)
            else:
                self._client.set_terminated(run_id, status)

    def log_metrics(self, run_id: str, metrics: Mapping[str, float], step: int, unix_ms: int) -> None:
        from mlflow.entities import Metric

        for part in batches(metrics.items(), MAX_METRICS):
            points = [Metric(key, value, unix_ms, step) for key, value in part]
            self._client.log_batch(run_id, metrics=points)

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        for part in batches(params.items(), MAX_PARAMS):
            self._client.log_batch(run_id, params=[Param(key, value) for key, value in part])

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        for part in batches(tags.items(), MAX_TAGS):
            self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in part])

    def tags(self, run_id: str) -> dict[str, str]:
        return dict(self._client.get_run(run_id).data.tags)

    def delete_tag(self, run_id: str, key: str) -> None:
        self._client.delete_tag(run_id, key)

    def log_artifact(self, run_id: str, path: str, to: str | None) -> None:
        self._client.log_artifact(run_id, path, to)

    def log_artifacts(self, run_id: str, path: str, to: str | None) -> None:
        self._client.log_artifacts(run_id, path, to)

    def flush(self) -> None:
        # What MLFLOW_ENABLE_ASYNC_LOGGING holds back.
        self._mlflow.flush_async_logging()


def batches(items: Iterable[T], size: int) -> Iterable[list[T]]:
    rest = iter(items)
    while part := list(itertools.islice(rest, size)):
        yield part
