"""A recorded timeline with the frames of its tables and figures, made once."""

from functools import cached_property
from typing import Any

import pandas as pd

from analysis import clients, frames
from analysis.frames import Study
from analysis.timelines import measures
from analysis.timelines.theory import ClosedForms, closed_forms


class View:
    """A recorded timeline with the frames of its tables and figures.

    Args:
        study: Timeline without numerics.
    """

    def __init__(self, study: Study) -> None:
        self.study, self.manifest = study, study.manifest

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.manifest["name"]

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """All jobs with their staleness."""
        return frames.jobs(self.study)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that have ended, with the ends of their starts.

        Raises:
            StudyError: No run has ended.
        """
        known = frames.runs(self.study)
        return measures.with_starts(self.jobs, known)

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """The measures of each run."""
        return measures.by_run(self.jobs, self.runs)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Rows of the timeline, one for each of their workers."""
        return self.study.table("rows")

    @cached_property
    def incidents(self) -> pd.DataFrame:
        """All incidents."""
        return self.study.table("incidents")

    @cached_property
    def forms(self) -> dict[str, ClosedForms]:
        """The closed forms of each group."""
        found = {}
        for group in dict.fromkeys(self.runs["group"]):
            entry = self.entry(group)
            weights = entry.get("upload_bytes", 0), entry.get("download_bytes", 0)
            number = entry["num_clients"]
            found[group] = closed_forms(entry["scenario"], number, *weights)
        return found

    def entry(self, group: str) -> dict[str, Any]:
        """Returns the manifest's entry of the first run of a group."""
        return next(run for run in self.manifest["runs"] if run["label"] == group)

    def who(self, group: str) -> pd.DataFrame:
        """Returns names and groups of the clients of a group's first run."""
        return clients.of_run(self.study, self.entry(group)["run"])


def view(study: Study | View) -> View:
    """Returns the view of a study; a view is its own."""
    return study if isinstance(study, View) else View(study)
