"""A study as offline runs of Weights & Biases, to be uploaded by who wants to."""

import os
from pathlib import Path
from typing import Any

from ...parts.extras import extra
from .records import RunRecord

LONGEST_TAG = 64
"""Characters that W&B allows; a longer variant is in the configuration alone."""


class OfflineRuns:
    """A folder of offline runs; `wandb sync FOLDER/wandb/offline-*` uploads them.

    Every metric is drawn over `commits`; `time` is virtual seconds, and a metric like
    any other, so that W&B can draw over it too. The configuration is the resolved
    scenario with `run.NAME` for the tags; runs of one group differ in replicate alone.

    Args:
        folder: Folder, in which W&B makes its own.
        study: Name of the study, the project's.

    Raises:
        UserError: The library wandb is not installed.
    """

    def __init__(self, folder: Path, study: str) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # before it is imported
        self._wandb: Any = extra("wandb", "wandb", "--to wandb")
        self._folder, self._project = folder, study
        self._settings = self._wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            disable_job_creation=True,
            x_disable_meta=True,
            x_disable_stats=True,
        )

    def start(self, record: RunRecord) -> "_OfflineRun":
        """Starts a run."""
        about = record.tags
        tags = [
            about["variant"],
            *(f"{key} {about[key]}" for key in ("replicate", "seed") if key in about),
        ]
        run = self._wandb.init(
            mode="offline",
            dir=str(self._folder),
            project=self._project,
            name=record.name,
            group=record.label,
            config=_config(record),
            tags=[tag for tag in tags if len(tag) <= LONGEST_TAG],
            settings=self._settings,
            reinit="create_new",
        )
        run.define_metric("commits")
        run.define_metric("*", step_metric="commits")
        return _OfflineRun(run)

    def close(self) -> None:
        """Ends W&B's own process."""
        self._wandb.teardown()


class _OfflineRun:
    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        self._run.log({"commits": float(commits), **measured})

    def flush(self) -> None:
        """Does nothing: W&B's own process does the writing."""

    def finish(self, record: RunRecord) -> None:
        self._run.config.update(_config(record), allow_val_change=True)
        final = {f"final/{name}": value for name, value in record.final.items()}
        self._run.summary.update(final)
        self._run.finish()

    def abandon(self) -> None:
        self._run.finish(exit_code=1)


def _config(record: RunRecord) -> dict[str, Any]:
    return record.config | {f"run.{key}": value for key, value in record.tags.items()}
