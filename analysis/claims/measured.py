"""Quantities that claims of a study are judged by: a row per run, a column each.

It is measured once from the study, or read from the small table that
`evidence/generate.py` keeps of a study, so that a study is judged again without its
runs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import ValidationError

from ...simulator.files.study import DamageError, StudyError
from ...simulator.files.study.measured import metrics_of_manifest
from ...simulator.parts.metrics import Metric, find, metric
from ...simulator.scenario.claims import Claim, read
from ..facts import Entry
from ..frames import Study, runs
from .groups import ClaimedGroups
from .numbers import Frame, Numbers, final, final_frame, horizon

OF_RUN = ["variant", "group", "parameters", "replicate", "stop"]
"""Columns that every run has, before its quantities."""


class Measured(ClaimedGroups):
    """The ended runs of a study, with the data that claims need.

    Args:
        table: Row per run, columns `OF_RUN`.
        low: Column per quantity, rows as in the table: lower bound of the true number;
            NaN where there is none.
        high: Upper bound of the true number.
        missing: Reason why a quantity could not be measured at all.
        metrics: Metrics that the study's manifest describes, by name.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        low: pd.DataFrame,
        high: pd.DataFrame,
        missing: Mapping[str, str] | None = None,
        metrics: Mapping[str, Metric] | None = None,
    ) -> None:
        self.table, self.low, self.high = table, low, high
        self._missing = missing or {}
        self.metrics = dict(metrics or {})
        replicates = table["replicate"].to_numpy(np.int64)
        self.rows: dict[str, np.ndarray] = {}
        for group, rows in table.groupby("group", sort=False).indices.items():
            mine = np.asarray(rows)
            self.rows[str(group)] = mine[np.argsort(replicates[mine], kind="stable")]
        self._replicates = replicates
        self._diverged = (table["stop"] == "diverged").to_numpy(bool)
        self._columns = {
            name: (low[name].to_numpy(np.float64), high[name].to_numpy(np.float64))
            for name in low
        }
        first = table.drop_duplicates("group")
        names = (first[name] for name in ("variant", "group", "parameters"))
        super().__init__(zip(*names, strict=True))

    def of(self, quantity: str, group: str) -> Numbers:
        """Returns a quantity of a group's replicates.

        Raises:
            StudyError: It was not measured.
        """
        if quantity in self._missing:
            raise StudyError(self._missing[quantity])
        if quantity not in self._columns:
            raise StudyError(
                f"the table that was kept of the study has no {quantity!r}; run the "
                f"study again"
            )
        rows = self.rows[group]
        low, high = self._columns[quantity]
        return Numbers(
            self._replicates[rows], low[rows], high[rows], self._diverged[rows]
        )

    def metric(self, name: str) -> Metric:
        """Returns a metric: the registered one, or else the manifest's description.

        Raises:
            UserError: It is not registered, and the manifest does not describe it.
        """
        return find(name) or self.metrics.get(name) or metric(name)

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return 1 + int(self._replicates.max())

    def first(self, replicates: int) -> "Measured":
        """Returns the measured quantities of the first replicates alone."""
        kept = np.asarray(self._replicates < replicates)
        table, low, high = (
            frame.loc[kept].reset_index(drop=True)
            for frame in (self.table, self.low, self.high)
        )
        return Measured(table, low, high, self._missing, self.metrics)

    def to_csv(self, path: Path) -> None:
        """Writes everything to the last digit, as `cell_of` does."""
        frame = self.table.assign(parameters=self.table["parameters"].map(json.dumps))
        cells = {
            str(quantity): [
                cell_of(*ends)
                for ends in zip(self.low[quantity], self.high[quantity], strict=True)
            ]
            for quantity in self.low
        }
        frame.assign(**cells).to_csv(path, index=False)


def read_csv(path: Path) -> Measured:
    """Reads the file of `Measured.to_csv`."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    table = frame[OF_RUN].assign(
        parameters=frame["parameters"].map(json.loads),
        replicate=frame["replicate"].astype(int),
    )
    cells = frame.drop(columns=OF_RUN)
    ends = cells.map(_ends_of)
    low, high = (
        pd.DataFrame({name: ends[name].str[end] for name in ends}, index=frame.index)
        for end in (0, 1)
    )
    return Measured(table, low.astype(np.float64), high.astype(np.float64))


def cell_of(low: float, high: float) -> str:
    """Returns a bounded number as a text: 1.0, >=1.0, <=2.0 or 1.0..2.0."""
    if np.isnan(low):
        return ""
    if low == high:
        return repr(float(low))
    if np.isposinf(high) and not np.isneginf(low):
        return f">={float(low)!r}"
    if np.isneginf(low) and not np.isposinf(high):
        return f"<={float(high)!r}"
    return f"{float(low)!r}..{float(high)!r}"


def _ends_of(cell: str) -> tuple[float, float]:
    """Returns the two numbers of a text that `cell_of` made."""
    if not cell:
        return np.nan, np.nan
    if cell.startswith(">="):
        return float(cell[2:]), np.inf
    if cell.startswith("<="):
        return -np.inf, float(cell[2:])
    low, _, high = cell.partition("..")
    return float(low), float(high or low)


def measure(
    study: Study, claims: Iterable[Claim | Entry], metrics: Sequence[str] = ()
) -> Measured:
    """Measures what some claims need of a study.

    Raises:
        StudyError: No run has ended, or (`DamageError`) a table is damaged.
    """
    table = runs(study)
    parameters = {run["run"]: run["parameters"] for run in study.manifest["runs"]}
    table = table.assign(parameters=table["run"].map(parameters))[OF_RUN]
    wanted: dict[str, Frame] = {}
    told_of = metrics_of_manifest(study.manifest)
    for claim in as_written(claims, told_of):
        wanted |= claim.quantities()
    wanted |= {final(each): final_frame(each) for each in metrics}
    low, high, missing = {}, {}, {}
    for quantity, frame_of in wanted.items():
        try:
            frame = frame_of(study)
        except DamageError:
            raise
        except StudyError as error:  # it was not evaluated
            missing[quantity] = str(error)
            continue
        low[quantity] = frame["low"].to_numpy(np.float64)
        high[quantity] = frame["high"].to_numpy(np.float64)
        if "commits" in frame:
            commits = frame["commits"].to_numpy(np.float64)
            low[horizon(quantity)] = high[horizon(quantity)] = commits
    index = table.index
    columns = pd.DataFrame(low, index), pd.DataFrame(high, index)
    return Measured(table, *columns, missing, told_of)


def as_written(
    claims: Iterable[Claim | Entry], metrics: Mapping[str, Metric] | None = None
) -> list[Claim]:
    """Returns claims from the manifest of a study.

    Raises:
        StudyError: One is of a kind that is not known here, or makes no sense.
    """
    found = []
    for number, claim in enumerate(claims):
        if isinstance(claim, Claim):
            found.append(claim)
            continue
        try:
            found.append(read(claim, metrics))
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise StudyError(
                f"claims.{number} of the study cannot be read: {said}; if it is of a "
                f"plug-in, register its module (--plugin)"
            ) from error
    return found
