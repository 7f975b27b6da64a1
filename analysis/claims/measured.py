"""What the claims of a study need to be judged: a row per run, a column per quantity.

It is measured once from the study, or read from the small table that
`docs/generate.py` keeps of a study, so that a study is judged again without its runs.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis import targets
from analysis.bounds import AT_LEAST, AT_MOST, EXACT
from analysis.curves import decade_slopes, run_means
from analysis.frames import Study, runs
from simulator.scenario.metrics import QUANTITIES
from simulator.trace import StudyError

OF_RUN = ["variant", "group", "parameters", "replicate", "stop"]
"""What is known of every run, before its quantities."""
SIGNS = {EXACT: "", AT_LEAST: ">=", AT_MOST: "<="}
"""What stands before a number in the table that is kept."""
TO_STOP = "commits to the target"
Frame = Callable[[Study], pd.DataFrame]


class Numbers(NamedTuple):
    """One quantity of the replicates of a group.

    Attributes:
        replicates: their numbers, ascending.
        values: NaN where there is none.
        bounds: of `analysis.bounds`.
        diverged: which runs did.
    """

    replicates: np.ndarray
    values: np.ndarray
    bounds: np.ndarray
    diverged: np.ndarray


class Measured:
    """The runs of a study that have ended, with what claims need of them.

    Args:
        table: a row per run, columns `OF_RUN`.
        values: a column per quantity, rows as in the table; NaN where there is none.
        bounds: what each value says, of `analysis.bounds`.
        missing: why a quantity could not be measured at all.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        values: pd.DataFrame,
        bounds: pd.DataFrame,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self.numbers, self.bounds = table, values, bounds
        self._missing = missing or {}
        replicates = table["replicate"].to_numpy(np.int64)
        found: Any = table.groupby("group", sort=False).indices
        self.rows: dict[str, np.ndarray] = {
            group: rows[np.argsort(replicates[rows], kind="stable")]
            for group, rows in found.items()
        }
        self._replicates = replicates
        self._diverged = (table["stop"] == "diverged").to_numpy(bool)
        self._columns = {
            name: (values[name].to_numpy(np.float64), bounds[name].to_numpy(np.int8))
            for name in values
        }
        self._parameters = table["parameters"].to_list()
        self._groups: dict[str, list[str]] = {}
        first = table.drop_duplicates("group")
        for group, variant in zip(first["group"], first["variant"], strict=True):
            self._groups.setdefault(variant, []).append(group)

    def of(self, quantity: str, group: str) -> Numbers:
        """Returns a quantity of a group's replicates.

        Raises:
            StudyError: it was not measured.
        """
        if quantity in self._missing:
            raise StudyError(self._missing[quantity])
        if quantity not in self._columns:
            raise StudyError(
                f"the table that was kept of the study has no {quantity!r}; run the "
                f"study again"
            )
        rows = self.rows[group]
        values, bounds = self._columns[quantity]
        return Numbers(
            self._replicates[rows], values[rows], bounds[rows], self._diverged[rows]
        )

    def parameters(self, group: str) -> dict[str, Any]:
        """Returns the swept keys of a group and their values."""
        return self._parameters[self.rows[group][0]]

    def groups(self, variant: str) -> list[str]:
        """Returns the groups of a variant, in the order of their first runs."""
        return self._groups.get(variant, [])

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return 1 + int(self._replicates.max())

    def first(self, replicates: int) -> "Measured":
        """Returns what was measured of the first replicates alone."""
        kept = np.asarray(self._replicates < replicates)
        table, numbers, bounds = (
            frame.loc[kept].reset_index(drop=True)
            for frame in (self.table, self.numbers, self.bounds)
        )
        return Measured(table, numbers, bounds, self._missing)

    def to_csv(self, path: Path) -> None:
        """Writes everything to the last digit; a bound has its sign before it."""
        frame = self.table.assign(parameters=self.table["parameters"].map(json.dumps))
        cells: dict[str, Any] = {
            str(quantity): [
                "" if np.isnan(value) else f"{SIGNS[int(bound)]}{value!r}"
                for value, bound in zip(
                    self.numbers[quantity].tolist(), self.bounds[quantity], strict=True
                )
            ]
            for quantity in self.numbers
        }
        frame.assign(**cells).to_csv(path, index=False)


def read_csv(path: Path) -> Measured:
    """Reads what `Measured.to_csv` wrote."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    table = frame[OF_RUN].assign(
        parameters=frame["parameters"].map(json.loads),
        replicate=frame["replicate"].astype(int),
    )
    cells = frame.drop(columns=OF_RUN)
    signs = {sign: bound for bound, sign in SIGNS.items() if sign}
    bounds = cells.map(lambda cell: signs.get(cell[:2], EXACT))
    values = cells.map(lambda cell: float(cell.lstrip("<>=")) if cell else float("nan"))
    return Measured(table, values, bounds)


def measure(
    study: Study, claims: Iterable[Mapping[str, Any]], metrics: Sequence[str] = ()
) -> Measured:
    """Measures what some claims need of a study.

    Args:
        study: finished or not.
        claims: as manifests have them.
        metrics: whose final values are measured besides.

    Raises:
        StudyError: no run has ended.
    """
    table = runs(study)
    parameters = {run["run"]: run["parameters"] for run in study.manifest["runs"]}
    table = table.assign(parameters=table["run"].map(parameters))[OF_RUN]
    wanted: dict[str, Frame] = {}
    for claim in claims:
        wanted |= quantities(claim)
    wanted |= {final(metric): _finals(metric) for metric in metrics}
    values, bounds, missing = {}, {}, {}
    for quantity, frame_of in wanted.items():
        try:
            frame = frame_of(study)
        except StudyError as error:  # it was not evaluated
            missing[quantity] = str(error)
            continue
        values[quantity] = frame["value"].to_numpy(np.float64)
        bounds[quantity] = frame["bound"].to_numpy(np.int8)
        if "commits" in frame:
            values[horizon(quantity)] = frame["commits"].to_numpy(np.float64)
            bounds[horizon(quantity)] = np.zeros(len(frame), np.int8)
    index = table.index
    return Measured(
        table, pd.DataFrame(values, index), pd.DataFrame(bounds, index), missing
    )


def quantities(claim: Mapping[str, Any]) -> dict[str, Frame]:
    """Returns the quantities that a claim is about, and how each is measured."""
    if claim.get("faster") is not None:
        ((metric, value),) = claim["to"].items()
        counted = claim.get("counted_in", "time")
        return {to_target(claim): _times(metric, value, counted)}
    if claim.get("fewer") is not None:
        return {TO_STOP: _commits_to_stop}
    if claim.get("ratio") is not None:
        of = claim["of"]
        return {end(of): _ends(of) if of in QUANTITIES else _finals(of)}
    metric = claim["metric"]
    slope = claim.get("slope")
    if slope is None:
        return {final(metric): _finals(metric)}
    if isinstance(slope, str):
        return {decade_slope(metric): lambda study: decade_slopes(study, metric)}
    return {run_mean(metric): lambda study: run_means(study, metric)}


def final(metric: str) -> str:
    """Returns the name of a metric's final value."""
    return f"final {metric}"


def end(of: str) -> str:
    """Returns the name of what a run has come to."""
    return f"{of} at the end" if of in QUANTITIES else final(of)


def to_target(claim: Mapping[str, Any]) -> str:
    """Returns the name of what it took to reach the target of a claim `faster`."""
    ((metric, value),) = claim["to"].items()
    return f"{claim.get('counted_in', 'time')} to {metric} {value!r}"


def decade_slope(metric: str) -> str:
    """Returns the name of a metric's slope over the last decade of commits."""
    return f"slope of {metric}"


def run_mean(metric: str) -> str:
    """Returns the name of a metric's mean over a run."""
    return f"mean {metric}"


def horizon(quantity: str) -> str:
    """Returns the name of the commits that a mean is over."""
    return f"commits of {quantity}"


def _finals(metric: str) -> Frame:
    return lambda study: targets.final_bounds(study, metric)


def _ends(of: str) -> Frame:
    """Returns what runs came to; one that diverged would have come to more."""

    def measured(study: Study) -> pd.DataFrame:
        table = targets.final_quantities(study, of, diverged=True)
        lost = (runs(study)["stop"] == "diverged").to_numpy(bool)
        return table.assign(bound=np.where(lost, AT_LEAST, EXACT))

    return measured


def _times(metric: str, value: float, counted: str) -> Frame:
    def measured(study: Study) -> pd.DataFrame:
        table = targets.times_to_target(study, metric, value, counted)
        bounds = np.where(table["reached"], EXACT, AT_LEAST)
        return table.assign(value=table["time"], bound=bounds)

    return measured


def _commits_to_stop(study: Study) -> pd.DataFrame:
    """Returns the commits until runs stopped at their target.

    A run that diverged or stalled would never have reached it: it counts as waiting as
    long as the longest run.
    """
    table = runs(study)
    commits = table["commits"].astype(np.float64)
    never = table["stop"].isin(targets.HOPELESS)
    return table[["group", "replicate"]].assign(
        value=commits.mask(never, commits.max()),
        bound=np.where(table["stop"] == "target", EXACT, AT_LEAST),
    )
