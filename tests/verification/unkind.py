"""Claims whose truth is known where noise is unkind: 25 cases of a review.

Runs that are skewed, or diverge once in a while, or are seen at few evaluations: the
very cases of asynchrony. Where the review had a mean on the border of a claim, the
median lies there, since claims are about the typical run.

    python -m tests.verification.unkind

writes the numbers of docs/error-rates.md: how often these, and claims of each kind with
normal noise, are decided wrongly and rightly.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from tests.verification.claims_at_random import (
    ACCURACY,
    DECIDED,
    EFFECT,
    HORIZON,
    LOG2,
    LOOKS,
    LOSS,
    MAKERS,
    TARGET,
    Claims,
    Family,
    Generator,
    Maker,
    Noise,
    compared,
    decided,
    normal,
    studied,
    value,
)

PLANS = (8, 20, None)
"""Replicates of the tables; None for the looks."""


class Case(NamedTuple):
    """Claims whose truth lies on the border or beyond, and verdicts that are wrong."""

    make: Maker
    wrong: tuple[str, ...] = DECIDED


def alike(noise: Noise, size: int = 1, lost: float = 0.0, **metric: str) -> Maker:
    """Both sides are alike."""

    def make(of: Family) -> Claims:
        kind = metric or ACCURACY
        for side in ("b", *map(str, range(size))):
            bad = of.generator.random(of.n) < lost
            values = 0.5 + 0.01 * noise(of.generator, of.n)
            of.finals(side, values, bad, kind["metric"])
        claim = {"than": f"b{of.name}"} | kind
        return [{"higher": f"{k}{of.name}"} | claim for k in range(size)]

    return make


def faster(
    slow: Noise,
    fast: Noise,
    border: float = 1.0,
    never: float = 0.0,
    size: int = 1,
    every: float = 0.0,
) -> Maker:
    """Times of both sides, of which some never end; or seen at times, and a ratio."""

    def late(generator: Generator, times: Any) -> Any:
        return np.where(generator.random(len(times)) < never, 2 * HORIZON, times)

    def make(of: Family) -> Claims:
        times = slow(of.generator, of.n)
        of.times("s", late(of.generator, times), every=every)
        for k in range(size):
            mine = fast(of.generator, of.n)
            mine = mine if every == 0 else times / mine
            of.times(str(k), late(of.generator, mine), every=every)
        claim = {"than": f"s{of.name}", "to": TARGET, "by_at_least": border}
        return [{"faster": f"{k}{of.name}"} | claim for k in range(size)]

    return make


def few_rows(rows: int) -> Maker:
    """Accuracies are shares of so few test rows; both sides have the same chance."""

    def make(of: Family) -> Claims:
        for side in ("a", "b"):
            of.finals(side, of.generator.binomial(rows, 0.8, of.n) / rows)
        return of.than("higher", **ACCURACY)

    return make


def swept(means: Any) -> Maker:
    """Final values along a sweep, with a standard deviation of a half."""

    def make(of: Family) -> Claims:
        of.along(means, 0.5, np.zeros(of.n))
        return [{"monotone": f"a{of.name}", "over": "x"} | ACCURACY]

    return make


def critical(ratio: float, border: float) -> Maker:
    """Critical values in 0.05 to 0.8, swept by factors of two."""

    def make(of: Family) -> Claims:
        values = 0.2 * np.exp(of.generator.normal(0, 0.5, of.n))
        for side, largest in (("a", values * ratio), ("b", values)):
            for x in 0.0125 * 2.0 ** np.arange(9):
                for replicate, own in enumerate(largest):
                    final = [0.9 if x <= own else 0.1]
                    at = {"x": float(x)}
                    name = side + of.name
                    of.study.add(name, replicate, [0], at, test_accuracy=final)
        more = {"over": "x", "within": 0.05, "by_at_least": border}
        return of.than("critical", **more, **ACCURACY)

    return make


def exponential(generator: Generator, n: int) -> Any:
    return generator.exponential(1.0, n)


def lognormal(generator: Generator, n: int) -> Any:
    return generator.lognormal(0.0, 1.5, n)


def t2(generator: Generator, n: int) -> Any:
    return generator.standard_t(2, n)


def pareto(power: float) -> Noise:
    """Returns a law of Pareto with the median 1."""
    middle = 2 ** (1 / power)
    return lambda generator, n: (1 + generator.pareto(power, n)) / middle


def level(generator: Generator, n: int) -> Any:
    """Returns a time that is the same in all replicates of a study."""
    return np.full(n, generator.uniform(5.0, 30.0))


def constant(number: float) -> Noise:
    return lambda _, n: np.full(n, number)


def tail(law: Noise, middle: float, sign: float = -1.0) -> Noise:
    """Returns a law with its median at zero and a tail to one side."""
    return lambda generator, n: 0.05 * sign * (law(generator, n) - middle)


def on_border(kind: str, noise: Noise, lost: float = 0.0) -> Maker:
    return compared(kind, -0.05, noise=noise, lost=lost, within=0.05)


NULL, HOLDS = exponential, (claims.HOLDS,)
CASES: dict[str, Case] = {
    "higher, t2 noise, both alike": Case(alike(t2)),
    **{
        f"higher (loss), both diverge in {100 * p:.0f} %": Case(alike(t2, 1, p, **LOSS))
        for p in (0.3, 0.5, 0.8)
    },
    "higher (accuracy), both diverge in 30 %": Case(alike(t2, lost=0.3)),
    **{
        f"faster, exponential times, {100 * p:.0f} % never arrive": Case(
            faster(NULL, NULL, never=p)
        )
        for p in (0.0, 0.05, 0.13, 0.3)
    },
    "faster x2, censored, ratio 2": Case(
        faster(lambda g, n: 2 * g.exponential(1, n), exponential, 2.0, 0.1)
    ),
    "six higher, lognormal": Case(alike(lognormal, 6)),
    "twenty higher, t2": Case(alike(t2, 20)),
    "six faster, 13 % never arrive": Case(faster(NULL, NULL, never=0.13, size=6)),
    "monotone over 4, flat": Case(swept([0.0] * 4)),
    "monotone over 8, flat": Case(swept([0.0] * 8)),
    "critical, alike": Case(critical(1.0, 1.0)),
    "no_worse at the border, exponential tail": Case(
        on_border("no_worse", tail(exponential, LOG2))
    ),
    "no_worse at the border, lognormal tail": Case(
        on_border("no_worse", tail(lognormal, 1.0))
    ),
    **{
        f"no_worse at the border, one side diverges in {100 * p:.1f} %": Case(
            on_border("no_worse", normal(0.01), p), HOLDS
        )
        for p in (0.059, 0.1, 0.2)
    },
    "close at the border, one side diverges in 10 %": Case(
        on_border("close", normal(0.01), 0.1), HOLDS
    ),
    "faster x2, constant against Pareto(1.5)": Case(
        faster(constant(2.0), pareto(1.5), 2.0)
    ),
    "faster x2, constant against exponential": Case(
        faster(constant(2.0), lambda g, n: g.exponential(1 / LOG2, n), 2.0)
    ),
    "value, exponential, on the lower border": Case(
        value(0.5, 0.1, 0.4, tail(exponential, LOG2, 1.0))
    ),
    "value, Pareto(2.2), on the upper border": Case(
        value(0.5, 0.1, 0.6, tail(pareto(2.2), 1.0, 1.0))
    ),
    "evaluations every 3 s, ratio 1.1 on the border": Case(
        faster(level, constant(1.1), 1.1, every=3.0)
    ),
    "evaluations every 3 s, ratio 1.03 against 1.2": Case(
        faster(level, constant(1.03), 1.2, every=3.0), HOLDS
    ),
    "accuracy of 50 rows": Case(few_rows(50)),
    "accuracy of 100 rows": Case(few_rows(100)),
    "critical x1.9, ratio 1.74": Case(critical(1.74, 1.9), HOLDS),
    "monotone, truth 1, 2, 1.9, 3": Case(swept([1, 2, 1.9, 3]), HOLDS),
    "monotone, truth 0, -1, -1, -1, 1, 3": Case(swept([0, -1, -1, -1, 1, 3]), HOLDS),
}


def shares_wrong(case: Case, number: int) -> list[float]:
    """Returns the shares of so many families in which any claim is decided wrongly.

    With 8 and 20 replicates, and by the looks.
    """
    known = studied(case.make, number, LOOKS[-1], 0.0, 7)
    shares = []
    for plan in PLANS:
        found = decided(*known, plan)
        bad: pd.Series = found["verdict"].isin(case.wrong)
        shares.append(float(bad.groupby(found["origin"].to_numpy()).any().mean()))
    return shares


def tables(number: int = 400) -> Iterator[str]:
    """Yields a line per kind and per case of unkind noise, in per cent.

    Of a kind wrong decisions at the border, right ones beyond it, each with 8 and 20
    replicates and by the looks, and the replicates at which the looks ended.
    """
    for kind, maker in MAKERS.items():
        shares, used = [], 0.0
        for effect in (0.0, EFFECT):
            known = studied(maker, number, LOOKS[-1], effect, [1, LOOKS[-1]])
            for plan in PLANS:
                found = decided(*known, plan)
                verdicts = HOLDS if effect else DECIDED
                shares.append(f"{100 * found['verdict'].isin(verdicts).mean():.1f}")
                used = float(found["replicates"].mean())
        yield f"| {kind} | {' | '.join(shares)} | {used:.1f} |"
    for name, case in CASES.items():
        many = any(word in name for word in ("critical", "twenty", "six"))
        now = shares_wrong(case, 200 if many else 600)
        yield f"| {name} | {' | '.join(f'{100 * share:.1f}' for share in now)} |"


if __name__ == "__main__":
    for line in tables():
        print(line, flush=True)  # noqa: T201
