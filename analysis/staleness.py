"""Distributions of staleness, per client or group, and the laws that they follow."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError
from ..simulator.files.timeline import NO_COMMIT
from . import facts
from .clients import GROUP, groups
from .facts import Entry
from .folders import takes_folder
from .frames import Study, check_groups, chosen, configurations, joined
from .laws import ScenarioWorld
from .theory import activation_from_rates, embedding_age_law, exponential_staleness_law

Law = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Law of a client's staleness: ages in commits, and their probability."""

QUANTILES = (0.5, 0.95)
PARTS_SHOWN = tuple(f"{100 * part:g} %" for part in QUANTILES)
"""Quantiles that tables show besides the mean."""
OF_PARTS = ("group", "quantity", "clients", "count", "mean", *PARTS_SHOWN, "max")
"""Columns of tables of client groups."""
BEYOND = 1e-6
"""Probability beyond the last age of a law."""
WEIGHTS = {"contribution": "num_applied", "embedding": "uses"}
"""How often a client's staleness of a quantity counts: a column of `measured`."""


@takes_folder
def histogram(
    study: Study,
    group: str,
    client: int | Sequence[int] | None = None,
    quantity: str | None = None,
    *,
    steady: bool = False,
) -> pd.DataFrame:
    """Returns the distribution of a staleness in a group of replicates.

    Args:
        study: Study, finished or not.
        group: Group of runs.
        client: Client, from 1, or several; None takes all together.
        quantity: `contribution` (commits since a contribution's read) or `embedding`
            (age of a stored embedding when others used it). By default the latter
            where it exists, as in VAFL: ask for `contribution` there.
        steady: Whether the start of each run is left out, in which all clients are
            fresh; comparisons with a law or mean of the steady state leave it out.

    Returns:
        Columns low, high (bins of commits, half open), count, density (per commit).

    Raises:
        StudyError: There is no such group, client or quantity, or the study is a
            timeline of which statistics alone were kept.
    """
    table = binned(study, group)
    quantity = _known(quantity, table)
    if client is not None:
        _check_clients(study, group, client)
        table = table.loc[table["client"].isin(np.atleast_1d(client))]
    quantity = quantity or default_quantity(table)
    return _summed(table.loc[~table["start"]] if steady else table, quantity)


@takes_folder
def by_client(
    study: Study, group: str | None = None, quantity: str | None = None
) -> pd.DataFrame:
    """Returns how stale each client was, and what theory predicts where it does.

    Args:
        study: Study, finished or not.
        group: Group of runs, or a variant with all its swept values; by default all.
        quantity: As in `histogram`.

    Returns:
        Columns variant, group, the swept keys, client, quantity, count, mean (of the
        whole run), steady mean (without the start of each run), theory (the mean of the
        steady state; NaN where `staleness_law` knows none), 50 %, 95 % (commits);
        `clients` has the maxima.

    Raises:
        StudyError: There is no such group or quantity, or the study is a
            timeline of which statistics alone were kept.
    """
    wanted = chosen(study, None if group is None else [group])
    table, who = binned(study), measured(study)
    table = table.loc[table["group"].isin(wanted)]
    quantity = _known(quantity, table)
    rows = []
    for name in wanted:
        of_group = table.loc[table["group"] == name]
        what = quantity or default_quantity(of_group)
        law = _own_law(study, name, what)
        of_group = of_group.loc[of_group["quantity"] == what]
        for client in np.unique(of_group["client"]).tolist():
            ages = of_group.loc[of_group["client"] == client]
            frame = _summed(ages, what)
            own = who.loc[(who["group"] == name) & (who["client"] == client)]
            places = [quantile(frame, part) for part in QUANTILES]
            means = exact(own, what)[0], _steady_mean(own, ages, what)
            predicted = law(client).mean() if law else float("nan")
            count = int(frame["count"].sum())
            rows.append((name, client, what, count, *means, predicted, *places))
    names = ["group", "client", "quantity", "count", "mean", "steady mean", "theory"]
    found = pd.DataFrame(rows, columns=pd.Index([*names, *PARTS_SHOWN]))
    return configurations(study).merge(found, on="group")


@takes_folder
def by_client_group(study: Study, quantity: str | None = None) -> pd.DataFrame:
    """Returns the staleness of all clients and of each client group.

    Returns:
        Columns variant, group (of runs), the swept keys, quantity (as in `histogram`),
        clients (`all`, or the name of their group and how many it has), count (of
        contributions applied, or uses of embeddings), mean, 50 %, 95 % (of histograms,
        which also have what a buffer still held at the end; within a bin of several
        integers as if evenly filled), max (commits).

    Raises:
        StudyError: There is no such quantity, or the study is a
            timeline of which statistics alone were kept.
    """
    stale, who = binned(study), measured(study)
    quantity = _known(quantity, stale)
    rows = []
    for group, mine in who.groupby("group", sort=False):
        table = stale.loc[stale["group"] == group]
        what = quantity or default_quantity(table)
        parts = {"all": (mine, table)}
        if GROUP in who:
            sizes = groups(mine.loc[mine["run"] == mine["run"].iloc[0]])
            for part, size in sizes.items():
                own = mine.loc[mine[GROUP] == part], table.loc[table[GROUP] == part]
                parts[f"{part} ({size})"] = own
        for name, (own, ages) in parts.items():
            frame = _summed(ages, what)
            places = [quantile(frame, each) for each in QUANTILES]
            count = int(own[WEIGHTS[what]].sum())
            average, largest = exact(own, what)
            rows.append((group, what, name, count, average, *places, largest))
    found = pd.DataFrame(rows, columns=pd.Index(OF_PARTS))
    swept = configurations(study)  # of which `clients` may be one
    return swept.merge(found, on="group", suffixes=(" (swept)", ""))


@takes_folder
def divided(study: Study) -> pd.DataFrame:
    """Returns `by_client_group` of those groups that divide their clients.

    Where there are embeddings, a row each for them and for contributions, and a column
    `quantity`.
    """
    there = {*binned(study)["quantity"]}
    both = [each for each in WEIGHTS if each in there]
    found = pd.concat(by_client_group(study, each) for each in both or [None])
    parted = found.loc[found["clients"] != "all", "group"]
    found = found.loc[found["group"].isin(parted), [*OF_PARTS]]
    if "embedding" not in there:
        return found.drop(columns="quantity")
    return found.loc[found["count"] > 0]


@takes_folder
def binned(study: Study, group: str | None = None) -> pd.DataFrame:
    """Returns the table `staleness` with the columns of runs; a timeline's by its jobs.

    Args:
        study: Study, finished or not.
        group: Group of runs; by default all.

    Raises:
        StudyError: There is no such group, or the study is a
            timeline of which statistics alone were kept.
    """
    if group is not None:
        check_groups(study, group)
    table = joined(study, "staleness")
    if study.manifest.get("kind") == "timeline":
        table = _of_jobs(study)
    return table if group is None else table.loc[table["group"] == group]


def _of_jobs(study: Study) -> pd.DataFrame:
    """Returns a row for each job that was applied, as the table `staleness` has bins.

    The start of a run lasts until every client has had a contribution applied.
    """
    jobs = joined(study, "jobs")
    jobs = jobs.loc[jobs["staleness"].notna()]
    low = jobs["staleness"].astype(np.int64)
    first = jobs.groupby(["run", "client"])["commit"].min()
    over = first.groupby("run").max()
    present = first.groupby("run").size()
    everyone = {run["run"]: run["num_clients"] for run in study.manifest["runs"]}
    over[present < present.index.map(everyone)] = NO_COMMIT
    start = jobs["commit"] <= jobs["run"].map(over)
    return jobs.assign(
        quantity="contribution", start=start, low=low, high=low + 1, count=1
    )


def _known(quantity: str | None, table: pd.DataFrame) -> str | None:
    there = {*table["quantity"]} or {*WEIGHTS}
    if quantity is not None and quantity not in there:
        known = [each for each in WEIGHTS if each in there]
        raise StudyError(
            f"quantity must be one of {', '.join(known)}, got {quantity!r}"
        )
    return quantity


def _check_clients(study: Study, group: str, client: int | Sequence[int]) -> None:
    table = joined(study, "clients")
    known = table.loc[table["group"] == group, "client"]
    for number in np.atleast_1d(client):
        if not (known == number).any():
            raise StudyError(
                f"client must be from 1 to {known.max()} in group {group!r}, got "
                f"{number}"
            )


@takes_folder
def measured(study: Study) -> pd.DataFrame:
    """Returns the table `clients` with `uses`, the number of uses of embeddings."""
    tallied = joined(study, "staleness")
    uses = tallied.loc[tallied["quantity"] == "embedding"]
    uses = uses.groupby(["run", "client"])["count"].sum().rename("uses")
    return joined(study, "clients").join(uses, on=["run", "client"])


@takes_folder
def of_clients(
    study: Study, group: str, clients: Sequence[int], quantity: str, *, steady: bool
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yields each client's distribution, as `histogram`, and mean, as `by_client`.

    The tables of the study are read once for all clients.
    """
    own, ages = measured(study), binned(study, group)
    own = own.loc[own["group"] == group]
    ages = ages.loc[ages["quantity"] == quantity]
    for client in clients:
        jobs = own.loc[own["client"] == client]
        bins = ages.loc[ages["client"] == client]
        if steady:
            shown = bins.loc[~bins["start"]]
            yield _summed(shown, quantity), _steady_mean(jobs, bins, quantity)
        else:
            yield _summed(bins, quantity), exact(jobs, quantity)[0]


def _steady_mean(own: pd.DataFrame, ages: pd.DataFrame, quantity: str) -> float:
    """Returns the exact mean without what was counted in the starts of runs.

    These are in bins, most of which hold one integer, as little is stale in a start.
    """
    start = ages.loc[ages["start"]]
    early, total = int(start["count"].sum()), float(own[WEIGHTS[quantity]].sum())
    if total <= early:
        return float("nan")
    of_start = mean(start) * early if early else 0.0
    return (exact(own, quantity)[0] * total - of_start) / (total - early)


def exact(table: pd.DataFrame, quantity: str) -> tuple[float, float]:
    """Returns mean and maximum of a staleness, commits; NaN where none was measured.

    They are not of histograms, whose bins hold several integers each.
    """
    name = "embedding_staleness" if quantity == "embedding" else "staleness"
    if f"{name}_mean" not in table:
        return float("nan"), float("nan")
    weight = table[WEIGHTS[quantity]].fillna(0)
    means = table[f"{name}_mean"]
    total = float(weight[means.notna()].sum())
    average = float((means * weight).sum()) / total if total else float("nan")
    return average, float(table[f"{name}_max"].max())


@takes_folder
def staleness_law(study: Study, group: str) -> Law | None:
    """Returns the law of each client's staleness in a group, where one is known.

    It holds where clients restart at once and each has exponential compute times of its
    own rate: then every commit is client k's with probability p_k, its rate over the
    sum of all rates, independently of the past. A contribution's staleness is geometric
    from 0, P(s) = p_k (1 - p_k)^s; the age of a stored embedding is geometric from 1,
    if each upload refreshes those of all samples.

    Returns:
        From a client's number, ages in commits and their probabilities, of the quantity
        that `histogram` shows by default, after the start; None where another law
        holds, none is known, or the start of a run was not over.

    Raises:
        StudyError: There is no such group, or the study is a
            timeline of which statistics alone were kept.

    Source: VAFL, equation 3 (V-07).
    """
    own = _own_law(study, group, default_quantity(binned(study, group)))
    if own is None:
        return None

    def law(client: int) -> tuple[np.ndarray, np.ndarray]:
        known = own(client)
        ages = np.arange(known.support()[0], known.ppf(1 - BEYOND) + 1)
        return ages, known.pmf(ages)

    return law


def _own_law(study: Study, group: str, quantity: str) -> Callable[[int], Any] | None:
    """Returns `staleness_law` as laws of SciPy, which have exact means."""
    table = binned(study, group)
    of_group = [run for run in study.manifest["runs"] if run["label"] == group]
    table = table.loc[table["quantity"] == quantity]
    steady = set(table.loc[~table["start"], "run"])
    if not steady or steady != set(table["run"]):
        return None
    rates = _rates(of_group[0])
    if rates is None or not rates.size:
        return None
    if quantity != "contribution" and not facts.of(of_group[0]).get("refreshes_all"):
        return None

    if quantity == "contribution":
        return lambda client: exponential_staleness_law(rates, client - 1)
    shares = activation_from_rates(rates)
    return lambda client: embedding_age_law(float(shares[client - 1]))


@takes_folder
def stale_groups(study: Study) -> set[str]:
    """Returns the groups in which anything was stale, unlike in synchronous rounds."""
    found = set()
    for group, table in binned(study).groupby("group"):
        own = table.loc[table["quantity"] == default_quantity(table)]
        if (own["high"] > 1).any():
            found.add(str(group))
    return found


def default_quantity(table: pd.DataFrame) -> str:
    """Returns the relevant staleness: of embeddings, where there are any."""
    return "embedding" if (table["quantity"] == "embedding").any() else "contribution"


def mean(frame: pd.DataFrame) -> float:
    """Returns the mean of a histogram, each bin at the middle of its integers."""
    if not frame["count"].sum():
        return float("nan")
    middle = (frame["low"] + frame["high"] - 1) / 2
    return float(np.average(middle, weights=frame["count"]))


def quantile(frame: pd.DataFrame, part: float) -> float:
    """Returns the smallest staleness that at least a part of the counts are not above.

    A bin of several integers counts as evenly filled.
    """
    total = int(frame["count"].sum())
    if not total:
        return float("nan")
    below = np.cumsum(frame["count"].to_numpy(np.float64))
    wanted = part * total * (1 - 1e-12)  # or 0.95 * 20 is more than 19
    number = int(np.searchsorted(below, wanted))
    low, high, count = (
        float(frame[name].iloc[number]) for name in ("low", "high", "count")
    )
    missing = wanted - (below[number] - count)
    return low + float(np.ceil(missing / count * (high - low))) - 1


def _rates(entry: Entry) -> np.ndarray | None:
    known = facts.of(entry).get("closed_forms") or ()
    scenario = entry.get("scenario")
    if "memoryless" not in known or not scenario or entry.get("overhead_s"):
        return None
    try:
        return ScenarioWorld(scenario, entry["num_clients"], {}).rates()
    except ValueError:  # they do more, or their times have another law
        return None


def _summed(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    table = table.loc[table["quantity"] == quantity]
    counts = table.groupby(["low", "high"])["count"].sum().reset_index()
    width = counts["high"] - counts["low"]
    total = max(int(counts["count"].sum()), 1)
    counts["density"] = counts["count"] / (width * total)
    return counts
