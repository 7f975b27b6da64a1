"""A study as an experiment of MLflow, in a database in a local folder."""

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from analysis.exporting.records import RunRecord, library, records, values
from analysis.frames import Study

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
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before it is imported
    for needed in ("sqlalchemy", "alembic"):
        library(needed, "mlflow")
    tracking = library("mlflow.tracking", "mlflow")
    entities = library("mlflow.entities", "mlflow")
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
    here = folder.resolve()
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{here / 'mlflow.db'}")
    artifacts = here.parent / ARTIFACTS  # MLflow keeps the whole path
    experiment = client.create_experiment(
        study.manifest["name"], artifact_location=artifacts.as_uri()
    )
    for record in records(study):
        _write_run(client, entities, experiment, record, folder / ARTIFACTS)


def _write_run(
    client: Any, entities: Any, experiment: str, record: RunRecord, artifacts: Path
) -> None:
    created = client.create_run(experiment, run_name=record.name, tags=record.tags)
    run = created.info.run_id
    mine = artifacts / run / ARTIFACTS  # where MLflow looks for them
    mine.mkdir(parents=True)
    config = json.dumps(record.config, indent=2)
    (mine / "config.json").write_text(config, encoding="utf-8")
    params = [
        entities.Param(key, str(value))
        for key, value in record.config.items()
        if KEY.fullmatch(key) and len(str(value)) <= LONGEST
    ]
    metrics, step, milliseconds = [], 0, 0
    for row in record.points.to_dict("records"):
        step, milliseconds = int(row["commits"]), round(1_000 * row["time"])
        metrics += [
            entities.Metric(name, value, milliseconds, step)
            for name, value in values(row).items()
        ]
    step = int(record.final.get("commits", step))
    milliseconds = round(1_000 * record.final.get("virtual_s", milliseconds / 1_000))
    metrics += [
        entities.Metric(f"final/{name}", value, milliseconds, step)
        for name, value in record.final.items()
    ]
    for first in range(0, len(params), MOST_PARAMS):
        client.log_batch(run, params=params[first : first + MOST_PARAMS])
    for first in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run, metrics=metrics[first : first + MOST_METRICS])
    client.set_terminated(run)
