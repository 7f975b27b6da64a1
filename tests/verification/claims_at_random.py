"""Studies whose truth is known: many claims of one kind, each on variants of its own.

Every claim has an origin of its own, so that it is a family by itself. Where a truth
lies on a claim's border, both decided verdicts count as wrong.

    python -m tests.verification.claims_at_random

writes the tables of docs/judging.md: how often each kind is decided wrongly and
rightly, and how often claims are where runs are skewed, rarely diverge, or are seen at
few evaluations (`tests.verification.skewed`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import Measured, measure
from stalesim.simulator.claims import Claim, read
from tests.unit.analysis.studies import empty, evaluations_of, manifest_of, run_of

SPREAD = 0.01
"""Standard deviation of a difference, of a logarithm of a ratio, of a slope."""
OF_BOTH = 0.2
"""Of what the sides of a pair have in common, which pairing takes out."""
EFFECT = 1.5 * SPREAD
"""How far from its border a truth lies that is not on it."""
WIDTH = 3 * SPREAD
"""Of an equivalence, to either side."""
VALUES = (1, 2, 3, 4)
"""Of a sweep."""
TARGET = {"test_accuracy": 0.5}
FINE = 1e-9
"""Of a time, between the evaluations before and at the target."""
LOOKS = (10, 14, 20)


class Study:
    """A study of final values, or of times, in memory."""

    def __init__(self) -> None:
        self.manifest = manifest_of()
        self._rows: dict[str, list[float]] = {"run": [], "time": [], "commits": []}
        self._metrics: dict[str, list[float]] = {}
        self.tables: dict[str, pd.DataFrame] = {}

    def add(
        self,
        variant: str,
        replicate: int,
        commits: Any,
        parameters: dict[str, Any] | None = None,
        stop: str = "time",
        **metrics: Any,
    ) -> None:
        """Adds a run that was evaluated at some commits, a second each."""
        number = len(self.manifest["runs"])
        values = parameters or {}
        label = ", ".join([variant, *(f"{k}={v}" for k, v in values.items())])
        run = run_of(number, label, replicate, variant=variant, stop=stop)
        run |= {"parameters": values, "commits": int(commits[-1])}
        self.manifest["runs"].append(run)
        self._rows["run"] += [number] * len(commits)
        self._rows["commits"] += list(commits)
        self._rows["time"] += list(metrics.pop("times", commits))
        for name, column in metrics.items():
            self._metrics.setdefault(name, []).extend(column)

    def table(self, name: str) -> pd.DataFrame:
        if name != "evaluations":
            return empty(name)
        if not self.tables:
            times = np.array(self._rows["time"], np.float64)
            frame = evaluations_of(0, times, **self._metrics)
            self.tables["evaluations"] = frame.assign(
                run=np.array(self._rows["run"], np.int32),
                commits=np.array(self._rows["commits"], np.int64),
            )
        return self.tables["evaluations"]


Maker = Callable[[Study, str, np.random.Generator, int, float], dict[str, Any]]
"""Adds the runs of a claim with so many replicates, whose truth lies so far on the
claim's side of its border; returns the claim."""


def _pairs(
    generator: np.random.Generator, replicates: int, difference: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns two sides whose differences have a mean and the spread."""
    common = generator.normal(0.5, OF_BOTH, replicates)
    noise = generator.normal(0, SPREAD, replicates)
    return common + difference + noise, common


def _finals(study: Study, name: str, sides: Any) -> None:
    for side, values in zip(("a", "b"), sides, strict=True):
        for replicate, value in enumerate(values):
            study.add(f"{side}{name}", replicate, [0], test_accuracy=[value])


def _compared(kind: str, border: float, sign: float = 1.0, **more: Any) -> Maker:
    def make(
        study: Study, name: str, generator: Any, replicates: int, effect: float
    ) -> dict[str, Any]:
        sides = _pairs(generator, replicates, border + sign * effect)
        _finals(study, name, sides)
        claim = {kind: f"a{name}", "than": f"b{name}", "metric": "test_accuracy"}
        return claim | more

    return make


def _ratio(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    # The upper border is 2 (1 + WIDTH); more of the claim's side is less of the ratio.
    log = np.log(2 * (1 + WIDTH)) - effect
    one, other = _pairs(generator, replicates, float(log))
    _finals(study, name, (np.exp(one), np.exp(other)))
    claim = {"ratio": f"a{name}", "than": f"b{name}", "of": "test_accuracy"}
    return claim | {"is": 2.0, "within": 2 * WIDTH}


def _value(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    values = generator.normal(0.5 + WIDTH - effect, SPREAD, replicates)
    _finals(study, name, (values, values))
    claim = {"value": f"a{name}", "metric": "test_accuracy"}
    return claim | {"is": 0.5, "within": WIDTH}


def _times(study: Study, side: str, times: np.ndarray, until: float = np.inf) -> None:
    for replicate, time in enumerate(times):
        end = min(time, until)
        reached = [0.0, 0.0, float(time <= until)]
        ends = [0.0, end * (1 - FINE), end]
        study.add(side, replicate, [0, 1, 2], times=ends, test_accuracy=reached)


def _faster(until: float) -> Maker:
    def make(
        study: Study, name: str, generator: Any, replicates: int, effect: float
    ) -> dict[str, Any]:
        slow, fast = _pairs(generator, replicates, float(np.log(2)) + effect)
        _times(study, f"a{name}", np.exp(fast))
        _times(study, f"b{name}", np.exp(slow), until)
        claim = {"faster": f"a{name}", "than": f"b{name}", "to": TARGET}
        return claim | {"by_at_least": 2.0}

    return make


def _fewer(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    slow, fast = _pairs(generator, replicates, float(np.log(2)) + effect)
    for side, logs in (("a", fast), ("b", slow)):
        for replicate, log in enumerate(logs):
            last = round(1e9 * float(np.exp(log)))
            commits = [0, last - 1, last]
            more: dict[str, Any] = {"stop": "target", "test_accuracy": [0, 0, 1]}
            study.add(f"{side}{name}", replicate, commits, **more)
    return {"fewer": f"a{name}", "than": f"b{name}", "by_at_least": 2.0}


COMMITS = np.array([10, 30, 100])


def _slope(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    for replicate, slope in enumerate(
        generator.normal(-0.9 - effect, SPREAD, replicates)
    ):
        gap = COMMITS.astype(float) ** slope
        study.add(f"a{name}", replicate, COMMITS, optimality_gap=gap)
    claim = {"slope": f"a{name}", "metric": "optimality_gap"}
    return claim | {"is": -1.0, "within": 0.1}


def _horizons(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    slopes = generator.normal(-0.4 - effect, SPREAD, replicates)
    for horizon in (100, 400, 1600):
        for replicate, slope in enumerate(slopes):
            level = float(horizon) ** slope
            more = {"optimality_gap": [level, level]}
            study.add(f"{horizon}-{name}", replicate, [0, horizon], **more)
    claim = {"slope": [f"{horizon}-{name}" for horizon in (100, 400, 1600)]}
    return claim | {"metric": "optimality_gap", "is": -0.5, "within": 0.1}


def _swept(
    study: Study, name: str, generator: Any, replicates: int, means: np.ndarray
) -> None:
    common = generator.normal(0.5, OF_BOTH, replicates)
    for x, mean in zip(VALUES, means, strict=True):
        noise = generator.normal(0, SPREAD / np.sqrt(2), replicates)
        for replicate, value in enumerate(common + mean + noise):
            at = {"x": x}
            study.add(f"a{name}", replicate, [0], at, test_accuracy=[value])


def _monotone(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    means = effect * np.arange(len(VALUES)) / 2
    _swept(study, name, generator, replicates, means)
    return {"monotone": f"a{name}", "over": "x", "metric": "test_accuracy"}


def _steady(
    study: Study, name: str, generator: Any, replicates: int, effect: float
) -> dict[str, Any]:
    # The largest difference lies on the border; the others half inside.
    means = np.array([0.0, 0.5, 0.5, 1.0]) * (WIDTH - effect)
    _swept(study, name, generator, replicates, means)
    claim = {"steady": f"a{name}", "over": "x", "metric": "test_accuracy"}
    return claim | {"within": WIDTH}


MAKERS: dict[str, Maker] = {
    "faster": _faster(np.inf),
    "faster, censored": _faster(1.3 * 2 * float(np.exp(0.5))),  # a tenth of the slower
    "fewer": _fewer,
    "higher": _compared("higher", 0.0),
    "no_worse": _compared("no_worse", -WIDTH, within=WIDTH),
    "close": _compared("close", WIDTH, -1.0, within=WIDTH),
    "ratio": _ratio,
    "value": _value,
    "slope": _slope,
    "slope over horizons": _horizons,
    "monotone": _monotone,
    "steady": _steady,
}
ESTIMATES: dict[str, float] = {
    "faster": float(np.log(2)),
    "fewer": float(np.log(2)),
    "higher": 0.0,
    "no_worse": -WIDTH,
    "close": WIDTH,
    "ratio": float(np.log(2 * (1 + WIDTH))),
    "value": 0.5 + WIDTH,
    "slope": -0.9,
    "slope over horizons": -0.4,
}
"""What is estimated where the truth lies on the border."""
OF_RATIOS = ("faster", "fewer", "ratio")
"""Kinds whose estimate is the exponential of a mean."""


def studied(
    kind: str, number: int, replicates: int, effect: float, seed: int
) -> tuple[Measured, list[dict[str, Any]]]:
    """Returns what is measured of so many claims of a kind, and the claims.

    Args:
        kind: a key of `MAKERS`.
        number: of claims.
        replicates: of each.
        effect: how far its truth lies on the claim's side of its border.
        seed: of the noise.
    """
    study, generator = Study(), np.random.default_rng([seed, replicates])
    said: list[dict[str, Any]] = []
    for index in range(number):
        claim = MAKERS[kind](study, f"-{index}", generator, replicates, effect)
        said.append(claim | {"says": "x", "origin": str(index)})
    return measure(study, typed(said)), said


def wrong(effect: float) -> tuple[str, ...]:
    """Returns the verdicts that are wrong of a truth so far on the claim's side."""
    if effect == 0:
        return claims.HOLDS, claims.FAILS
    return (claims.FAILS,) if effect > 0 else (claims.HOLDS,)


def decided(
    measured: Measured, said: list[dict[str, Any]], replicates: int | None
) -> pd.DataFrame:
    """Returns what is said of claims with so many replicates, or after their looks."""
    if replicates is None:
        return at_looks(measured, said)
    plan = claims.ReplicatePlan(replicates)
    return claims.judge(measured.first(replicates), typed(said), plan)


def typed(said: list[dict[str, Any]]) -> list[Claim]:
    """Returns claims with any origin, of which a scenario's claims have only four."""
    return [
        read(claim | {"origin": "own"}).model_copy(update={"origin": claim["origin"]})
        for claim in said
    ]


def at_looks(measured: Measured, said: list[dict[str, Any]]) -> pd.DataFrame:
    """Returns the findings of each origin at the look at which all of it was decided.

    Or at the last look; the study of an origin is not gone on with once it is decided.
    """
    found = []
    for replicates in LOOKS:
        plan = claims.ReplicatePlan(replicates, LOOKS)
        frame = claims.judge(measured.first(replicates), typed(said), plan)
        is_open = frame["verdict"] == claims.OPEN
        done = ~is_open.groupby(frame["origin"]).transform("any")
        if replicates == LOOKS[-1]:
            done[:] = True
        found.append(frame.loc[done])
        left = {*frame.loc[~done, "origin"]}
        said = [claim for claim in said if claim["origin"] in left]
        if not said:
            break
    return pd.concat(found, ignore_index=True)


def covers(found: pd.DataFrame, kind: str, effect: float) -> float:
    """Returns the share of intervals that contain the truth."""
    towards = -1.0 if kind in FALLING else 1.0
    truth = ESTIMATES[kind] + towards * effect
    truth = float(np.exp(truth)) if kind in OF_RATIOS else truth
    return float(((found["low"] <= truth) & (truth <= found["high"])).mean())


FALLING = ("close", "ratio", "value", "slope", "slope over horizons")
"""Kinds of which more on the claim's side is less of what is estimated."""


PLANS = (8, 20, None)
"""Replicates of the tables; None for the looks."""


def table(number: int = 400) -> str:
    """Returns a row per kind: wrong decisions at the border, right ones beyond it."""
    rows = ["| kind | wrong, 8 | wrong, 20 | wrong, looks | right, 8 | right, 20 | "]
    rows[0] += "right, looks | replicates |"
    rows.append("| --- " * 8 + "|")
    for kind in MAKERS:
        shares, used = [], 0.0
        for effect in (0.0, EFFECT):
            known = studied(kind, number, LOOKS[-1], effect, 1)
            for replicates in PLANS:
                found = decided(*known, replicates)
                verdicts = (claims.HOLDS,) if effect else wrong(effect)
                shares.append(f"{100 * found['verdict'].isin(verdicts).mean():.1f}")
                used = float(found["replicates"].mean())
        rows.append(f"| {kind} | {' | '.join(shares)} | {used:.1f} |")
        print(rows[-1], flush=True)  # noqa: T201
    return "\n".join(rows)


if __name__ == "__main__":
    from tests.verification import skewed

    table()
    skewed.table()
