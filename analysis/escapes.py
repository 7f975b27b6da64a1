"""Losses that have left the scale on which they began, and runs that diverged."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ..simulator.files.study import is_summary
from ..simulator.parts.errors import counted
from .frames import Study, described, evaluations, first_metric, runs

FAR = {
    "test_loss": 10.0,
    "objective": 10.0,
    "worker_loss": 10.0,
    "optimality_gap": 10.0,
    "gradient_norm_squared": 1e6,
}
"""A metric that ends above this multiple of its start has left its scale.

Learning lowers all of them; the first that was evaluated is looked at. A gradient may
begin small on a plateau.
"""
FAR_OF_BATCH = 1e6
"""The same for losses of single batches, which are noisy."""
LEARNED = 0.05
"""Least fraction of the possible gain in accuracy that counts as learning."""
FIRST = 10
"""Batches whose largest loss is the starting level: a policy-gradient loss is about
zero, so that one batch does not show its scale."""
SURE = 0.95
"""Level of the bound on the chance of divergence."""
MOST_NAMED = 3
"""Groups that are named where groups differ."""


def escapes(study: Study) -> pd.Series:
    """Returns the ratio of each run's final loss to its initial one.

    The loss is the first of `FAR` that was evaluated, else that of the batches, if
    those were recorded. Only finite values count.

    Returns:
        By run, those alone whose loss has left its scale.
    """
    return _ends(study)[2]


def warnings(study: Study) -> Iterator[str]:
    """Yields a line on runs that diverged, on losses that left their scale, on no gain.

    The first two name the worst run with its numbers, and the number of such runs.
    """
    table, (name, ends, factors, broken) = runs(study).set_index("run"), _ends(study)
    unsound = table.index.isin(broken)
    lost = table.loc[(table["stop"] == "diverged") | unsound]
    if len(lost):
        first = lost.iloc[0]
        at = first.get("diverged_at_commit")
        when = f" at commit {at:.0f}" if at is not None and np.isfinite(at) else ""
        yield (
            f"{_named(first)} diverged{when}: its loss is no finite number"
            f"{_others(lost, table)}; a smaller step size may keep it"
        )
    yield from _unlearned(study)
    factors = factors.drop(lost.index, errors="ignore")
    if len(factors):
        run = factors.index[int(factors.argmax())]
        first, last = ends.loc[run, ["first", "last"]]
        yield (
            f"{_named(table.loc[run])} left the scale of its loss: {name} began "
            f"at {first:.4g} and ended at {last:.4g}, {factors[run]:.3g} times as high"
            f"{_others(factors, table)}; a smaller step size may keep it"
        )


def _unlearned(study: Study) -> Iterator[str]:
    """Yields a line where no group's share, such as an accuracy, rose above its start.

    A target that is 95 % of the best final value is no target then.
    """
    metric, table = first_metric(study.manifest), evaluations(study)
    known = described(study, metric)
    if metric not in table or not known.higher_is_better or known.bounds != (0, 1):
        return
    ends = table.groupby(["group", "run"])[metric].agg(["first", "last"])
    means = ends.groupby("group").mean()
    gains = (means["last"] - means["first"]).dropna()
    if gains.empty:
        return
    first, last = means.loc[gains.index[int(gains.argmax())]]
    if last - first < LEARNED * (1 - first):
        yield (
            f"nothing was learned: {metric} began at {first:.3g} and ended at "
            f"{last:.3g} in the best group; take another step size, less noise or a "
            f"longer run"
        )


def chance(study: Study) -> str:
    """Returns how many runs of each group diverged, and how many might at most.

    The bound is the exact one-sided one at 95 %, as a median does not show what is
    rare. Groups that have the same numbers share them.

    Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in
    the case of the binomial (Biometrika 1934).
    """
    table = runs(study)
    lost = (table["stop"] == "diverged").groupby(table["group"], sort=False)
    from scipy.special import betaincinv  # a tenth of a second, as in `statistics`

    shared: dict[tuple[int, int], list[str]] = {}
    for (group, k), n in zip(lost.sum().items(), lost.size(), strict=True):
        shared.setdefault((int(k), int(n)), []).append(str(group))
    parts = [
        f"{k} of {n} of {_whose(names, len(shared))}, at most "
        f"{100 * (betaincinv(k + 1, n - k, SURE) if k < n else 1):.0f} % of such runs"
        for (k, n), names in shared.items()
    ]
    return f"diverged: {'; '.join(parts)} ({100 * SURE:g} %)"


def _whose(names: list[str], kinds: int) -> str:
    if kinds == 1:
        return "each variant" if names[1:] else names[0]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _ends(study: Study) -> tuple[str, pd.DataFrame, pd.Series, list[int]]:
    """Returns a loss in words, and its first and last finite value by run.

    With them come the factors of runs whose loss has left its scale, and the runs whose
    last evaluation is no finite number.
    """
    table = evaluations(study)
    metric = next((name for name in FAR if name in table), None)
    name, far, unsound = str(metric), FAR.get(str(metric), FAR_OF_BATCH), []
    if metric is not None:
        ended = table.groupby("run").tail(1)
        broken = ~np.isfinite(ended[metric].to_numpy(np.float64))
        unsound = ended.loc[broken, "run"].tolist()
    elif not is_summary(study.manifest):
        table, metric, name = study.table("commits"), "loss", "the loss of a batch"
    if metric not in table:
        nothing = pd.DataFrame(columns=pd.Index(["first", "last"]), dtype=np.float64)
        return name, nothing, nothing["last"], unsound
    known = table.loc[np.isfinite(table[metric].to_numpy(np.float64))]
    ends = known.groupby("run")[metric].agg(["first", "last"]).astype(np.float64)
    if metric == "loss":
        ends["first"] = known.groupby("run")[metric].agg(_begun)
    positive = ends.loc[ends["first"] > 0]
    factors = positive["last"] / positive["first"]
    return name, ends, factors.loc[factors > far], unsound


def _begun(losses: pd.Series) -> float:
    return float(losses.iloc[: max(1, min(FIRST, len(losses) // 2))].abs().max())


def _named(run: pd.Series) -> str:
    return f"{run['group']} (replicate {run['replicate']})"


def _others(these: pd.DataFrame | pd.Series, every: pd.DataFrame) -> str:
    more = len(these) - 1
    return f", and {more} more of {counted(len(every), 'run')}" if more else ""
