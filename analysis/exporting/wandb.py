"""A study as offline runs of Weights & Biases, to be uploaded by who wants to."""

import os
from pathlib import Path
from typing import Any

from analysis.exporting.records import RunRecord, library, records, values
from analysis.frames import Study

LONGEST_TAG = 64
"""Characters that W&B allows; a longer variant is in the configuration alone."""


def write(study: Study, folder: Path) -> None:
    """Writes an offline run per run; `wandb sync FOLDER/wandb/offline-*` uploads them.

    Every metric is drawn over `commits`; `time` is virtual seconds, and a metric like
    any other, so that W&B can draw over it too. The configuration is the resolved
    scenario with `run.NAME` for the tags; runs of one group differ in replicate alone.

    Args:
        study: Study with at least one run that has ended.
        folder: Empty folder.

    Raises:
        UserError: The library wandb is not installed.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # before it is imported
    wandb = library("wandb", "wandb")
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        disable_job_creation=True,
        x_disable_meta=True,
        x_disable_stats=True,
    )
    try:
        for record in records(study):
            _write_run(wandb, study.manifest["name"], record, folder, settings)
    finally:
        wandb.teardown()


def _write_run(
    wandb: Any, project: str, record: RunRecord, folder: Path, settings: Any
) -> None:
    about = record.tags
    tags = [
        about["variant"],
        *(f"{key} {about[key]}" for key in ("replicate", "seed") if key in about),
    ]
    with wandb.init(
        mode="offline",
        dir=str(folder),
        project=project,
        name=record.name,
        group=record.label,
        config=record.config | {f"run.{key}": value for key, value in about.items()},
        tags=[tag for tag in tags if len(tag) <= LONGEST_TAG],
        settings=settings,
        reinit="create_new",
    ) as run:
        run.define_metric("commits")
        run.define_metric("*", step_metric="commits")
        for row in record.points.to_dict("records"):
            run.log(values(row))
        run.summary.update({f"final/{k}": value for k, value in record.final.items()})
