"""A study as an experiment of MLflow, in a database in a local folder."""

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from ...simulator.config.extras import extra
from ..frames import Study
from .boards import write_whole
from .records import RunRecord, records

LONGEST = 6_000
"""Characters of a parameter that MLflow keeps; all are in `config.json`."""
MOST_METRICS, MOST_PARAMS = 1_000, 100
"""Most metrics and most parameters of one request."""
ARTIFACTS = "artifacts"
KEY = re.compile(r"[\w.\- :/]{1,250}", re.ASCII)
"""Names of parameters that MLflow takes."""


def write(study: Study, folder: Path) -> None:
    """Writes `mlflow.db` and a folder of artifacts.

    `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db` shows them. The step of a
    metric is the number of commits, its timestamp the virtual time in milliseconds;
    `time` is a metric of its own, in virtual seconds. What is known at the end alone is
    called `final/NAME`. Parameters are the resolved scenario, which is also an
    artifact, `config.json`, for entries that are too long or oddly named for MLflow.

    Args:
        study: Study with at least one run that has ended.
        folder: Empty folder; its content is moved into the one that it lies in.

    Raises:
        UserError: mlflow-skinny is not installed, or what its database needs.
    """
    board = Experiment(folder, study.manifest["name"], folder.resolve().parent)
    for record in records(study):
        write_whole(board, record)


def check() -> tuple[Any, Any]:
    """Returns the library's clients and entities.

    Raises:
        UserError: It, or what its database needs, is not installed.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before it is imported
    modules = ("sqlalchemy", "alembic", "mlflow.tracking", "mlflow.entities")
    *_, tracking, entities = (extra(name, "mlflow", "--to mlflow") for name in modules)
    return tracking, entities


class Experiment:
    """A database in a folder, with a folder of artifacts next to it.

    Args:
        folder: Folder to write.
        study: Name of the study, the experiment's.
        later: Folder in which both are looked for later; by default the same.
    """

    def __init__(self, folder: Path, study: str, later: Path | None = None) -> None:
        tracking, self._entities = check()
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
        here = folder.resolve()
        uri = f"sqlite:///{here / 'mlflow.db'}"
        self._client: Any = tracking.MlflowClient(tracking_uri=uri)
        # MLflow keeps the whole path.
        location = ((later or here) / ARTIFACTS).as_uri()
        self._experiment = self._client.create_experiment(
            study, artifact_location=location
        )
        self._artifacts = folder / ARTIFACTS

    def start(self, record: RunRecord) -> "_ExperimentRun":
        """Starts a run."""
        made = self._client.create_run(
            self._experiment, run_name=record.name, tags=record.tags
        )
        where = self._artifacts / made.info.run_id / ARTIFACTS
        return _ExperimentRun(self._client, self._entities, made.info.run_id, where)

    def close(self) -> None:
        """Does nothing: each call is a transaction of its own."""


class _ExperimentRun:
    def __init__(self, client: Any, entities: Any, run: str, artifacts: Path) -> None:
        self._client, self._entities, self._run = client, entities, run
        self._artifacts = artifacts  # where MLflow looks for them
        self._metrics: list[Any] = []
        self._last = 0, 0.0

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        milliseconds = round(1_000 * time)
        self._metrics += [
            self._entities.Metric(name, value, milliseconds, commits)
            for name, value in measured.items()
        ]
        self._last = commits, time

    def flush(self) -> None:
        for first in range(0, len(self._metrics), MOST_METRICS):
            some = self._metrics[first : first + MOST_METRICS]
            self._client.log_batch(self._run, metrics=some)
        self._metrics = []

    def finish(self, record: RunRecord) -> None:
        self._artifacts.mkdir(parents=True)
        config = json.dumps(record.config, indent=2)
        (self._artifacts / "config.json").write_text(config, encoding="utf-8")
        params = [
            self._entities.Param(key, str(value))
            for key, value in record.config.items()
            if KEY.fullmatch(key) and len(str(value)) <= LONGEST
        ]
        for first in range(0, len(params), MOST_PARAMS):
            some = params[first : first + MOST_PARAMS]
            self._client.log_batch(self._run, params=some)
        tags = [self._entities.RunTag(*tag) for tag in record.tags.items()]
        self._client.log_batch(self._run, tags=tags)
        step, time = self._last
        step = int(record.final.get("commits", step))
        time = record.final.get("virtual_s", time)
        named = {f"final/{name}": value for name, value in record.final.items()}
        self.log(step, time, named)
        self.flush()
        self._client.set_terminated(self._run)

    def abandon(self) -> None:
        self.flush()
        self._client.set_terminated(self._run, status="KILLED")
