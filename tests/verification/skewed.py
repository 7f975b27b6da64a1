"""Claims whose truth is known where noise is unkind: 25 cases of a review, and what
became of them.

Runs that are skewed, or diverge once in a while, or are seen at few evaluations: the
very cases of asynchrony. Where the review had a mean on the border of a claim, the
median lies there, since claims are about the typical run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import measure
from tests.verification.claims_at_random import FINE, Study, decided, typed

Generator = np.random.Generator
Claims = list[dict[str, Any]]
Maker = Callable[[Study, str, Generator, int], Claims]
HORIZON = 1e6
"""Time at which runs end that reach no target."""
METRIC = {"metric": "test_accuracy"}
BOTH, HOLDS, FAILS = (claims.HOLDS, claims.FAILS), (claims.HOLDS,), (claims.FAILS,)
LOSS = {"metric": "test_loss"}


class Case(NamedTuple):
    """Claims of one kind, whose truth lies on the border or beyond.

    Attributes:
        make: Adds the runs of a family with so many replicates; returns its claims.
        wrong: Verdicts that are wrong.
        before: How often they were given by the t-tests of before, as the review
            measured it: with 5 and 20 replicates, and by looks at 5, 8, 12 and 20.
    """

    make: Maker
    wrong: tuple[str, ...]
    before: tuple[str, str, str]


def _finals(
    study: Study, name: str, values: Any, lost: Any = None, metric: str = "accuracy"
) -> None:
    for replicate, value in enumerate(values):
        bad = lost is not None and lost[replicate]
        more: dict[str, Any] = {"stop": "diverged" if bad else "time"}
        more[f"test_{metric}"] = [value]
        study.add(name, replicate, [0], **more)


def _higher(
    noise: Callable[..., Any],
    size: int = 1,
    lost: float = 0.0,
    metric: str = "accuracy",
) -> Maker:
    """Both sides are alike."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        sides = [f"{side}{name}" for side in ("b", *range(size))]
        for side in sides:
            bad = generator.random(n) < lost
            values = 0.5 + 0.01 * noise(generator, n)
            _finals(study, side, values, bad, metric)
        more = {"than": sides[0], "metric": f"test_{metric}"}
        return [{"higher": side} | more for side in sides[1:]]

    return make


def _to_target(study: Study, name: str, times: Any, every: float = 0.0) -> None:
    """Adds runs that were evaluated at multiples of a period; by default very often."""
    for replicate, time in enumerate(times):
        arrived = time < HORIZON
        if every:
            seen = every * np.ceil(time / every)
            ends = [max(0.0, seen - every), seen]
        else:
            ends = [time * (1 - FINE), time] if arrived else [HORIZON, HORIZON + 1]
        reached = [0.0, 0.0, float(arrived)]
        study.add(name, replicate, [0, 1, 2], times=[0.0, *ends], test_accuracy=reached)


def _faster(
    slow: Callable[..., Any],
    fast: Callable[..., Any],
    border: float = 1.0,
    never: float = 0.0,
    size: int = 1,
    every: float = 0.0,
) -> Maker:
    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        times = slow(generator, n)
        _to_target(study, f"s{name}", _late(generator, times, never), every)
        said = []
        for k in range(size):
            mine = fast(generator, n) if every == 0 else times / fast(generator, n)
            _to_target(study, f"{k}{name}", _late(generator, mine, never), every)
            claim = {"faster": f"{k}{name}", "than": f"s{name}"}
            said.append(claim | {"to": {"test_accuracy": 0.5}, "by_at_least": border})
        return said

    return make


def _late(generator: Generator, times: Any, never: float) -> Any:
    return np.where(generator.random(len(times)) < never, HORIZON, times)


def _compared(
    kind: str, noise: Callable[..., Any], within: float = 0.05, lost: float = 0.0
) -> Maker:
    """The median difference lies on the lower border, and one side may diverge."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        common = generator.normal(0.6, 0.05, n)
        bad = generator.random(n) < lost
        _finals(study, f"b{name}", common)
        _finals(study, f"a{name}", common - within + noise(generator, n), bad)
        claim = {kind: f"a{name}", "than": f"b{name}", "within": within}
        return [claim | METRIC]

    return make


def _value(noise: Callable[..., Any], at: float) -> Maker:
    """The median lies on a border of 0.5 to 0.1."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        _finals(study, f"a{name}", at + noise(generator, n), metric="loss")
        return [{"value": f"a{name}", "is": 0.5, "within": 0.1} | LOSS]

    return make


def _rows(rows: int) -> Maker:
    """Accuracies are shares of so few test rows; both sides have the same chance."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        for side in ("a", "b"):
            _finals(study, side + name, generator.binomial(rows, 0.8, n) / rows)
        return [{"higher": f"a{name}", "than": f"b{name}"} | METRIC]

    return make


def _swept(means: Any, kind: dict[str, Any]) -> Maker:
    """Final values along a sweep, with a standard deviation of a half."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        for x, mean in enumerate(means):
            for replicate, value in enumerate(generator.normal(mean, 0.5, n)):
                study.add(f"a{name}", replicate, [0], {"x": x}, test_accuracy=[value])
        return [{"monotone": f"a{name}", "over": "x"} | METRIC | kind]

    return make


def _critical(ratio: float, border: float) -> Maker:
    """Critical values in 0.05 to 0.8, swept by factors of two."""

    def make(study: Study, name: str, generator: Generator, n: int) -> Claims:
        values = 0.2 * np.exp(generator.normal(0, 0.5, n))
        for side, critical in (("a", values * ratio), ("b", values)):
            for x in 0.0125 * 2.0 ** np.arange(9):
                for replicate, largest in enumerate(critical):
                    final = [0.9 if x <= largest else 0.1]
                    at = {"x": float(x)}
                    study.add(side + name, replicate, [0], at, test_accuracy=final)
        claim = {"critical": f"a{name}", "than": f"b{name}", "over": "x"}
        return [claim | {"within": 0.05, "by_at_least": border} | METRIC]

    return make


def _exponential(generator: Generator, n: int) -> Any:
    return generator.exponential(1.0, n)


def _tail(law: Callable[..., Any], middle: float, sign: float = -1.0) -> Any:
    """Returns a law with its median at zero and a tail to one side."""
    return lambda generator, n: 0.05 * sign * (law(generator, n) - middle)


def _lognormal(generator: Generator, n: int) -> Any:
    return generator.lognormal(0.0, 1.5, n)


def _constant(generator: Generator, n: int) -> Any:
    del generator
    return np.full(n, 2.0)


def _pareto(power: float) -> Any:
    """Returns a law of Pareto with the median 1."""
    middle = 2 ** (1 / power)
    return lambda generator, n: (1 + generator.pareto(power, n)) / middle


def _t2(generator: Generator, n: int) -> Any:
    return generator.standard_t(2, n)


def _level(generator: Generator, n: int) -> Any:
    """Returns a time that is the same in all replicates of a study."""
    return np.full(n, generator.uniform(5.0, 30.0))


def _times(ratio: float) -> Any:
    return lambda generator, n: np.full(n, ratio)


LOG2 = float(np.log(2))
_NULL = _exponential
CASES: dict[str, Case] = {
    "higher, t2 noise, both alike": Case(_higher(_t2), BOTH, ("2.1", "4.7", "4.7")),
    **{
        f"higher (loss), both diverge in {100 * p:.0f} %": Case(
            _higher(_t2, lost=p, metric="loss"), BOTH, ("≤ 1.2", "0.2", "0.7")
        )
        for p in (0.3, 0.5, 0.8)
    },
    "higher (accuracy), both diverge in 30 %": Case(
        _higher(_t2, lost=0.3), BOTH, ("2.5", "4.7", "5.0")
    ),
    **{
        f"faster, exponential times, {100 * p:.0f} % never arrive": Case(
            _faster(_NULL, _NULL, never=p), BOTH, ("≤ 3.5", "≤ 3.2", "≤ 3.0")
        )
        for p in (0.0, 0.05, 0.13, 0.3)
    },
    "faster x2, censored, ratio 2": Case(
        _faster(
            lambda g, n: np.minimum(2 * g.exponential(1, n), HORIZON),
            _exponential,
            border=2.0,
            never=0.1,
        ),
        BOTH,
        ("2.7", "0.5", "0.7"),
    ),
    "six higher, lognormal": Case(
        _higher(_lognormal, 6), BOTH, ("≤ 4", "≤ 2.5", "≤ 2.5")
    ),
    "twenty higher, t2": Case(_higher(_t2, 20), BOTH, ("≤ 4", "≤ 2.5", "≤ 2.5")),
    "six faster, 13 % never arrive": Case(
        _faster(_NULL, _NULL, never=0.13, size=6), BOTH, ("≤ 4", "≤ 2.5", "≤ 2.5")
    ),
    "monotone over 4, flat": Case(
        _swept([0.0] * 4, {}), BOTH, ("≤ 6.3", "≤ 5.2", "≤ 5.2")
    ),
    "monotone over 8, flat": Case(
        _swept([0.0] * 8, {}), BOTH, ("≤ 6.3", "≤ 5.2", "≤ 5.2")
    ),
    "critical, alike": Case(_critical(1.0, 1.0), BOTH, ("0", "≤ 3.9", "≤ 4.7")),
    "**no_worse at the border, exponential tail**": Case(
        _compared("no_worse", _tail(_exponential, LOG2)), BOTH, ("9.9", "9.0", "11.5")
    ),
    "**no_worse at the border, lognormal tail**": Case(
        _compared("no_worse", _tail(_lognormal, 1.0)), BOTH, ("31.3", "23.8", "33.2")
    ),
    **{
        f"**no_worse at the border, one side diverges in {100 * p:.1f} %**": Case(
            _compared("no_worse", lambda g, n: g.normal(0, 0.01, n), lost=p),
            HOLDS,
            before,
        )
        for p, before in (
            (0.059, ("74.3", "29.8", "73.8")),
            (0.1, ("58.3", "11.8", "57.7")),
            (0.2, ("31.7", "1.0", "31.2")),
        )
    },
    "**close at the border, one side diverges in 10 %**": Case(
        _compared("close", lambda g, n: g.normal(0, 0.01, n), lost=0.1),
        HOLDS,
        ("58.2", "11.7", "56.8"),
    ),
    "**faster x2, constant against Pareto(1.5)**": Case(
        _faster(_constant, _pareto(1.5), border=2.0), BOTH, ("11.0", "6.6", "8.1")
    ),
    "**faster x2, constant against exponential**": Case(
        _faster(_constant, lambda g, n: g.exponential(1 / LOG2, n), border=2.0),
        BOTH,
        ("6.2", "7.2", "7.3"),
    ),
    "**value, exponential, on the lower border**": Case(
        _value(_tail(_exponential, LOG2, 1.0), 0.4), BOTH, ("11.5", "9.7", "11.5")
    ),
    "**value, Pareto(2.2), on the upper border**": Case(
        _value(_tail(_pareto(2.2), 1.0, 1.0), 0.6), BOTH, ("4.5", "17.3", "18.7")
    ),
    "**evaluations every 3 s, ratio 1.1 on the border**": Case(
        _faster(_level, _times(1.1), border=1.1, every=3.0), BOTH, ("68", "78", "80")
    ),
    "**evaluations every 3 s, ratio 1.03 against 1.2**": Case(
        _faster(_level, _times(1.03), border=1.2, every=3.0),
        HOLDS,
        ("21.7", "10.3", "28.7"),
    ),
    "accuracy of 50 rows": Case(_rows(50), BOTH, ("≤ 8.0", "≤ 6.4", "≤ 6.8")),
    "accuracy of 100 rows": Case(_rows(100), BOTH, ("≤ 8.0", "≤ 6.4", "≤ 6.8")),
    "**critical x1.9, ratio 1.74**": Case(
        _critical(1.74, 1.9), HOLDS, ("0", "10.2", "27.0")
    ),
    "**monotone, truth 1, 2, 1.9, 3**": Case(
        _swept([1, 2, 1.9, 3], {}), HOLDS, ("97.8", "96.5", "99.3")
    ),
    "**monotone, truth 0, -1, -1, -1, 1, 3**": Case(
        _swept([0, -1, -1, -1, 1, 3], {}), HOLDS, ("75", "0", "39")
    ),
}
"""Cases by name; those that the t-tests decided wrongly in bold."""


def wrong(case: Case, number: int, seed: int = 7) -> list[float]:
    """Returns the shares of families in which any claim is decided wrongly.

    With 8 and 20 replicates, and by the looks of `claims_at_random`.

    Args:
        case: Case.
        number: Number of families.
        seed: Seed of the noise.
    """
    study, generator = Study(), np.random.default_rng(seed)
    said: Claims = []
    for family in range(number):
        made = case.make(study, f"-{family}", generator, 20)
        said += [one | {"says": "x", "origin": str(family)} for one in made]
    measured = measure(study, typed(said))
    shares = []
    for plan in (8, 20, None):
        found = decided(measured, said, plan)
        bad: pd.Series = found["verdict"].isin(case.wrong)
        shares.append(float(bad.groupby(found["origin"].to_numpy()).any().mean()))
    return shares


def table(number: int = 600) -> str:
    """Returns a row per case: wrong decisions before, and as they are now."""
    rows = [
        "| truth | before: 5 | 20 | looks | now: 8 | 20 | looks |",
        "| --- " * 7 + "|",
    ]
    for name, case in CASES.items():
        many = any(word in name for word in ("critical", "twenty", "six"))
        now = [f"{100 * share:.1f}" for share in wrong(case, number // (1 + 2 * many))]
        rows.append(f"| {name} | {' | '.join(case.before)} | {' | '.join(now)} |")
        print(rows[-1], flush=True)  # noqa: T201
    return "\n".join(rows)
