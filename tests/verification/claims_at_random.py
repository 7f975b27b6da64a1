"""Studies whose truth is known: many claims of one kind, each on variants of its own.

Every maker's claims have an origin of their own, so that they are a family by
themselves. Where a truth lies on a claim's border, both decided verdicts count as
wrong.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import Measured, measure
from stalesim.simulator.scenario.claims import Claim, read
from tests.unit.analysis.studies import empty, evaluations_of, manifest_of, run_of

SPREAD = 0.01
"""Standard deviation of a difference, of a logarithm of a ratio, of a slope."""
OF_BOTH = 0.2
"""Of what the sides of a pair have in common, which pairing takes out."""
OF_SIDE = SPREAD / 2**0.5
"""Of each of two values, whose difference has the spread."""
EFFECT = 1.5 * SPREAD
"""How far from its border a truth lies that is not on it."""
WIDTH = 3 * SPREAD
"""Of an equivalence, to either side."""
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


Generator = np.random.Generator
Noise = Callable[[Generator, int], Any]
Claims = list[dict[str, Any]]
HORIZON = 1e6
"""Time at which runs end that reach no target."""
ACCURACY, LOSS = {"metric": "test_accuracy"}, {"metric": "test_loss"}
GAP = {"metric": "optimality_gap", "within": 0.1}
LOG2 = float(np.log(2))
HORIZONS = (100, 400, 1600)


class Family(NamedTuple):
    """Runs of a family of claims, and how far their truth is on the claims' side."""

    study: Study
    name: str
    generator: Generator
    n: int
    effect: float

    def finals(
        self, side: str, values: Any, lost: Any = None, metric: str = "test_accuracy"
    ) -> None:
        """Adds runs with final values, of which some have diverged."""
        for replicate, value in enumerate(values):
            bad = lost is not None and lost[replicate]
            more: dict[str, Any] = {"stop": "diverged" if bad else "time"}
            more[metric] = [value]
            self.study.add(f"{side}{self.name}", replicate, [0], **more)

    def times(
        self, side: str, times: Any, until: float = HORIZON, every: float = 0.0
    ) -> None:
        """Adds runs to the target, evaluated very often, or once in a period."""
        for replicate, time in enumerate(times):
            end = min(time, until)
            ends = [0.0, end * (1 - FINE), end]
            if every:
                seen = every * np.ceil(time / every)
                ends = [0.0, max(0.0, seen - every), seen]
            reached = [0.0, 0.0, float(time <= until)]
            more: dict[str, Any] = {"times": ends, "test_accuracy": reached}
            self.study.add(f"{side}{self.name}", replicate, [0, 1, 2], **more)

    def along(self, means: Any, spread: float, common: Any) -> None:
        """Adds a sweep whose final values have such means, and what is in common."""
        for x, mean in enumerate(means):
            values = common + mean + self.generator.normal(0, spread, self.n)
            for replicate, value in enumerate(values):
                more: dict[str, Any] = {"test_accuracy": [value]}
                self.study.add(f"a{self.name}", replicate, [0], {"x": x}, **more)

    def common(self) -> Any:
        return self.generator.normal(0.5, OF_BOTH, self.n)

    def pairs(self, difference: float) -> tuple[Any, Any]:
        """Returns two sides with normal differences of a mean."""
        common = self.common()
        noise = self.generator.normal(0, SPREAD, self.n)
        return common + difference + noise, common

    def than(self, kind: str, **more: Any) -> Claims:
        """Returns a claim of side a against b."""
        return [{kind: f"a{self.name}", "than": f"b{self.name}"} | more]


Maker = Callable[[Family], Claims]
"""Adds the runs of a family; returns its claims."""


def normal(spread: float) -> Noise:
    return lambda generator, n: generator.normal(0, spread, n)


# Normal noise: one claim of each kind.


def compared(
    kind: str,
    border: float,
    sign: float = 1.0,
    noise: Noise | None = None,
    lost: float | None = None,
    **more: Any,
) -> Maker:
    """The median difference is at a border; one side may diverge."""

    def make(of: Family) -> Claims:
        common, bad = of.common(), None
        if lost is not None:
            bad = of.generator.random(of.n) < lost
        apart = (noise or normal(SPREAD))(of.generator, of.n)
        of.finals("b", common)
        of.finals("a", common + border + sign * of.effect + apart, bad)
        return of.than(kind, **ACCURACY, **more)

    return make


def _ratio(of: Family) -> Claims:
    # The upper border is 2 (1 + WIDTH); more of the claim's side is less of the ratio.
    one, other = of.pairs(float(np.log(2 * (1 + WIDTH))) - of.effect)
    of.finals("a", np.exp(one))
    of.finals("b", np.exp(other))
    interval = {"is": 2.0, "within": 2 * WIDTH}
    return of.than("ratio", of="test_accuracy", **interval)


def value(middle: float, within: float, at: float, noise: Noise) -> Maker:
    """The median is at a border of an interval around the middle."""

    def make(of: Family) -> Claims:
        values = at - of.effect + noise(of.generator, of.n)
        of.finals("a", values, metric="test_loss")
        return [{"value": f"a{of.name}", "is": middle, "within": within} | LOSS]

    return make


def _faster(until: float) -> Maker:
    def make(of: Family) -> Claims:
        slow, fast = of.pairs(LOG2 + of.effect)
        of.times("a", np.exp(fast))
        of.times("b", np.exp(slow), until)
        return of.than("faster", to=TARGET, by_at_least=2.0)

    return make


def _fewer(of: Family) -> Claims:
    slow, fast = of.pairs(LOG2 + of.effect)
    for side, logs in (("a", fast), ("b", slow)):
        for replicate, log in enumerate(logs):
            last = round(1e9 * float(np.exp(log)))
            commits = [0, last - 1, last]
            more: dict[str, Any] = {"stop": "target", "test_accuracy": [0, 0, 1]}
            of.study.add(f"{side}{of.name}", replicate, commits, **more)
    return of.than("fewer", by_at_least=2.0)


def _slope(of: Family) -> Claims:
    commits = np.array([10, 30, 100])
    slopes = of.generator.normal(-0.9 - of.effect, SPREAD, of.n)
    for replicate, slope in enumerate(slopes):
        gap = commits.astype(float) ** slope
        of.study.add(f"a{of.name}", replicate, commits, optimality_gap=gap)
    return [{"slope": f"a{of.name}", "is": -1.0} | GAP]


def _horizons(of: Family) -> Claims:
    slopes = of.generator.normal(-0.4 - of.effect, SPREAD, of.n)
    for horizon in HORIZONS:
        for replicate, slope in enumerate(slopes):
            more = {"optimality_gap": [float(horizon) ** slope] * 2}
            of.study.add(f"{horizon}-{of.name}", replicate, [0, horizon], **more)
    return [{"slope": [f"{one}-{of.name}" for one in HORIZONS], "is": -0.5} | GAP]


def _monotone(of: Family) -> Claims:
    of.along(of.effect * np.arange(4) / 2, OF_SIDE, of.common())
    return [{"monotone": f"a{of.name}", "over": "x"} | ACCURACY]


def _steady(of: Family) -> Claims:
    # The largest difference lies on the border; the others half inside.
    means = np.array([0.0, 0.5, 0.5, 1.0]) * (WIDTH - of.effect)
    of.along(means, OF_SIDE, of.common())
    return [{"steady": f"a{of.name}", "over": "x", "within": WIDTH} | ACCURACY]


MAKERS: dict[str, Maker] = {
    "faster": _faster(HORIZON),
    "faster, censored": _faster(1.3 * 2 * float(np.exp(0.5))),  # a tenth of the slower
    "fewer": _fewer,
    "higher": compared("higher", 0.0),
    "no_worse": compared("no_worse", -WIDTH, within=WIDTH),
    "close": compared("close", WIDTH, -1.0, within=WIDTH),
    "ratio": _ratio,
    "value": value(0.5, WIDTH, 0.5 + WIDTH, normal(SPREAD)),
    "slope": _slope,
    "slope over horizons": _horizons,
    "monotone": _monotone,
    "steady": _steady,
}
ESTIMATES: dict[str, float] = {
    "faster": 2.0,
    "fewer": 2.0,
    "higher": 0.0,
    "no_worse": -WIDTH,
    "close": WIDTH,
    "ratio": 2 * (1 + WIDTH),
    "value": 0.5 + WIDTH,
    "slope": -0.9,
    "slope over horizons": -0.4,
}
"""What is estimated where the truth lies on the border."""
DECIDED = (claims.HOLDS, claims.FAILS)
"""Both are wrong there."""


def studied(
    maker: Maker, number: int, replicates: int, effect: float, seed: Any
) -> tuple[Measured, Claims]:
    """Returns what is measured of so many families of a maker, and their claims.

    Args:
        maker: Maker.
        number: of families.
        replicates: of each.
        effect: how far their truth lies on the claims' side of their border.
        seed: of the noise.
    """
    study, generator, said = Study(), np.random.default_rng(seed), Claims()
    for index in range(number):
        made = maker(Family(study, f"-{index}", generator, replicates, effect))
        said += [claim | {"says": "x", "origin": str(index)} for claim in made]
    return measure(study, typed(said)), said


def decided(measured: Measured, said: Claims, replicates: int | None) -> pd.DataFrame:
    """Returns what is said of claims with so many replicates, or after their looks."""
    if replicates is None:
        return at_looks(measured, said)
    return claims.judge(measured.first(replicates), typed(said), replicates)


def typed(said: Claims) -> list[Claim]:
    """Returns claims with any origin, of which a scenario's claims have only four."""
    return [
        read(claim | {"origin": "own"}).model_copy(update={"origin": claim["origin"]})
        for claim in said
    ]


def at_looks(measured: Measured, said: Claims) -> pd.DataFrame:
    """Returns the findings of each origin at the look at which all of it was decided.

    Or at the last look; the study of an origin is not gone on with once it is decided.
    """
    found = []
    for replicates in LOOKS:
        seen = measured.first(replicates)
        frame = claims.judge(seen, typed(said), replicates, LOOKS)
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


def covers(found: pd.DataFrame, kind: str) -> float:
    """Returns the share of intervals that contain the truth, which is on the border."""
    truth = ESTIMATES[kind]
    return float(((found["low"] <= truth) & (truth <= found["high"])).mean())
