"""Where asynchrony beats rounds of m of n, and who wins where, of what was measured."""

import numpy as np
import pandas as pd
from scipy import stats

from analysis.theory import methods as theory
from benchmarks.observatory.tuned import MEANS, NOISES, TunedWorld, sizes

WORLD = ["clients", "tail", "spread", "noise"]
ASYNCHRONOUS = ("ASGD", "Ringmaster")
ROUNDS = {"stops": "m-synchronous, stops", "no stops": "m-synchronous"}


def tuned(times: pd.DataFrame) -> pd.DataFrame:
    """Returns the seconds of each method at its best size and step, by seed.

    The best has the smallest mean logarithm over seeds; what any seed does not reach
    the target with is not chosen. Rounds of all are a method of their own.
    """
    everyone = times[
        times["method"].eq("m-synchronous") & times["size"].eq(times["clients"])
    ]
    both = pd.concat([times, everyone.assign(method="synchronous")])
    both["log"] = np.log(both["s"])
    of = [*WORLD, "method", "size", "step"]
    means = both.groupby(of, as_index=False)["log"].mean()
    best = means.loc[means.groupby([*WORLD, "method"])["log"].idxmin()]
    return both.merge(best[of], on=of)


def phases(chosen: pd.DataFrame) -> pd.DataFrame:
    """Returns how many times longer rounds take than asynchrony, with 95 % intervals.

    In pairs of seeds, a mean of logarithms by t; and the theory's ratio, without
    constants. Where nothing is random, all seeds agree and the interval is a point.
    """
    rows = []
    for keys, own in chosen[chosen["clients"] == 16].groupby(WORLD):
        world = dict(zip(WORLD, keys, strict=True))
        seconds = own.pivot_table(index="seed", columns="method", values="log")
        against = seconds[list(ASYNCHRONOUS)].mean().idxmin()
        for name, method in ROUNDS.items():
            logs = (seconds[method] - seconds[against]).to_numpy()
            half = stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1)
            mean, half = logs.mean(), half / logs.size**0.5
            ratio, low, high = np.exp([mean, mean - half, mean + half])
            row = {**world, "rounds": name, "ratio": ratio, "low": low, "high": high}
            row["asynchronous"] = against
            row["m"] = int(own.loc[own["method"] == method, "size"].iloc[0])
            rows.append(row)
    found = pd.DataFrame(rows)
    pairs = found[["tail", "spread"]].drop_duplicates().itertuples(index=False)
    known = {(tail, spread): _theory(tail, spread) for tail, spread in pairs}
    found["theory"] = [
        known[row.tail, row.spread][NOISES.index(row.noise)]
        for row in found.itertuples()
    ]
    return found


def _theory(tail: str, spread: float) -> list[float]:
    """Returns min_m E[round of m] (1 + noise / m) over A_n (1 + noise / n)."""
    cell = TunedWorld(16, tail, spread, 0)
    tau, every = np.sort(cell.tau), np.array(sizes(16))
    means = tau if tail == "constant" else mean_rounds(tail, tau)
    means = means[every - 1]
    return [
        float(
            (means * (1 + noise / every)).min() / theory.asynchronous_time(tau, noise)
        )
        for noise in NOISES
    ]


def mean_rounds(tail: str, tau: np.ndarray) -> np.ndarray:
    """Returns the mean of the m-th smallest of all clients' times, by m.

    The integral of the chance that fewer than m are over, on a grid of logarithms: the
    slowest of Lomax times has a tail that adaptive quadrature gives up on.
    """
    x = np.geomspace(1e-7, 1e10, 40_001)
    fewer = np.zeros((tau.size + 1, x.size))  # chances that so many are over
    fewer[0] = 1
    for one in tau:
        rest = x / (one / MEANS[tail])
        late = np.exp(-rest) if tail == "exponential" else (1 + rest) ** -1.5
        fewer[1:] = fewer[1:] * late + fewer[:-1] * (1 - late)
        fewer[0] *= late
    return np.trapezoid(np.cumsum(fewer, axis=0)[:-1], x, axis=1) + x[0]


def winners(chosen: pd.DataFrame) -> pd.DataFrame:
    """Returns the seconds of all methods, geometric means over seeds, by world."""
    table = chosen.pivot_table(index=WORLD, columns="method", values="log")
    return np.exp(table).reset_index()
