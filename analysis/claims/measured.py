"""Quantities that claims of a study are judged by: a row per run, a column each.

It is measured once from the study, or read from the small table that
`docs/generate.py` keeps of a study, so that a study is judged again without its runs.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import ValidationError

from analysis import targets
from analysis.bounds import AT_LEAST, AT_MOST, EXACT
from analysis.frames import Study, runs
from simulator.claims import Claim, read
from simulator.metrics import Metric, find, metric
from simulator.trace import DamageError, StudyError
from simulator.trace.measured import metrics_told

OF_RUN = ["variant", "group", "parameters", "replicate", "stop"]
"""Columns that every run has, before its quantities."""
SIGNS = {EXACT: "", AT_LEAST: ">=", AT_MOST: "<="}
"""Signs before numbers in the table that is kept, by the meaning of the number."""
Frame = Callable[[Study], pd.DataFrame]


class Numbers(NamedTuple):
    """One quantity of the replicates of a group.

    Attributes:
        replicates: Numbers of the replicates, ascending.
        values: NaN where there is none.
        bounds: Meaning of each value, of `analysis.bounds`.
        diverged: Whether each run diverged.
    """

    replicates: np.ndarray
    values: np.ndarray
    bounds: np.ndarray
    diverged: np.ndarray


class Measured:
    """The runs of a study that have ended, with what claims need of them.

    Args:
        table: Row per run, columns `OF_RUN`.
        values: Column per quantity, rows as in the table; NaN where there is none.
        bounds: Meaning of each value, of `analysis.bounds`.
        missing: Reason why a quantity could not be measured at all.
        metrics: Metrics that the study's manifest tells of, by name.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        values: pd.DataFrame,
        bounds: pd.DataFrame,
        missing: Mapping[str, str] | None = None,
        metrics: Mapping[str, Metric] | None = None,
    ) -> None:
        self.table, self.numbers, self.bounds = table, values, bounds
        self._missing = missing or {}
        self.metrics = dict(metrics or {})
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
        values, bounds = self._columns[quantity]
        return Numbers(
            self._replicates[rows], values[rows], bounds[rows], self._diverged[rows]
        )

    def metric(self, name: str) -> Metric:
        """Returns a metric: the one of that name, or else what the study tells of it.

        Raises:
            UserError: It is not registered, and the study tells nothing of it.
        """
        return find(name) or self.metrics.get(name) or metric(name)

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
        return Measured(table, numbers, bounds, self._missing, self.metrics)

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
    study: Study,
    claims: Iterable[Claim | Mapping[str, Any]],
    metrics: Sequence[str] = (),
) -> Measured:
    """Measures what some claims need of a study.

    Args:
        study: Study, finished or not.
        claims: Claims of the study, also as manifests have them.
        metrics: Metrics whose final values are measured besides.

    Raises:
        StudyError: No run has ended, or (`DamageError`) a table is not what was
            written.
    """
    table = runs(study)
    parameters = {run["run"]: run["parameters"] for run in study.manifest["runs"]}
    table = table.assign(parameters=table["run"].map(parameters))[OF_RUN]
    wanted: dict[str, Frame] = {}
    told_of = metrics_told(study.manifest)
    for claim in as_written(claims, told_of):
        wanted |= claim.quantities()
    wanted |= {final(each): final_frame(each) for each in metrics}
    values, bounds, missing = {}, {}, {}
    for quantity, frame_of in wanted.items():
        try:
            frame = frame_of(study)
        except DamageError:
            raise
        except StudyError as error:  # it was not evaluated
            missing[quantity] = str(error)
            continue
        values[quantity] = frame["value"].to_numpy(np.float64)
        bounds[quantity] = frame["bound"].to_numpy(np.int8)
        if "commits" in frame:
            values[horizon(quantity)] = frame["commits"].to_numpy(np.float64)
            bounds[horizon(quantity)] = np.zeros(len(frame), np.int8)
    index = table.index
    columns = pd.DataFrame(values, index), pd.DataFrame(bounds, index)
    return Measured(table, *columns, missing, told_of)


def as_written(
    claims: Iterable[Claim | Mapping[str, Any]],
    metrics: Mapping[str, Metric] | None = None,
) -> list[Claim]:
    """Returns claims from the manifest of a study, or of an older one.

    Args:
        claims: Claims, also as manifests have them.
        metrics: Metrics that the manifest tells of, by name.

    Raises:
        StudyError: One is of a kind that is not known here, or makes no sense.
    """
    found = []
    for number, claim in enumerate(claims):
        if isinstance(claim, Claim):
            found.append(claim)
            continue
        if claim.get("rises"):  # what monotone was called
            claim = {**claim, "monotone": claim["rises"], "rises": None}
        try:
            found.append(read(claim, metrics))
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise StudyError(
                f"claims.{number} of the study cannot be read: {said}; if it is of a "
                f"plug-in, register its module (--import)"
            ) from error
    return found


def final_values(claim: Any) -> dict[str, Frame]:
    """Returns the final values of a claim's metric, which most kinds need."""
    return {final(claim.metric): final_frame(claim.metric)}


def final(metric: str) -> str:
    """Returns the name of a metric's final value."""
    return f"final {metric}"


def horizon(quantity: str) -> str:
    """Returns the name of the commits that a mean is over."""
    return f"commits of {quantity}"


def final_frame(metric: str) -> Frame:
    """Returns the function that measures a metric's final values."""
    return lambda study: targets.final_bounds(study, metric)
