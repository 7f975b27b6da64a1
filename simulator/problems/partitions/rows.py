"""Horizontal partitions: which training rows each client holds.

Each is a pure function of its configuration, the data and the run's seed. Clients hold
disjoint sets of rows, given as ascending ids, and together all of them.
"""

import numpy as np
from jaxtyping import Float, Int

from simulator.config.errors import ScenarioError
from simulator.config.expressions import per_client
from simulator.problems.data.base import Dataset
from simulator.problems.data.names import hint
from simulator.problems.partitions.parts import (
    Column,
    Dirichlet,
    Horizontal,
    Iid,
    Labels,
    Sizes,
)
from simulator.streams import Purpose, Streams

ATTEMPTS = 1000
"""Times that proportions are drawn before `least` is given up."""
ORDER, DEAL, PROPORTIONS = 0, 1, 2
"""What a stream is for: the order of the rows, of the shards, and proportions."""
Shares = list[Int[np.ndarray, " _"]]
"""Ids of the rows of each client, ascending."""


def iid(config: Iid, dataset: Dataset, seed: int) -> Shares:
    """Returns disjoint random shares of all training rows.

    Sizes differ by at most one; the first clients hold the larger shares.

    Args:
        config: number of clients.
        dataset: whose training rows are shared.
        seed: of the run, >= 0.

    Raises:
        ScenarioError: more clients than rows.
    """
    _refuse_too_many(config, dataset)
    order = _order(dataset, seed)
    return [np.sort(share) for share in np.array_split(order, config.clients)]


def labels(config: Labels, dataset: Dataset, seed: int) -> Shares:
    """Returns shares of a few classes each: rows sorted by class, dealt in shards.

    Shards differ in size by at most one. Which rows of a class are in which of its
    shards is random. A shard across the border of two classes holds both, and a client
    may be dealt two shards of one class, so that `classes_per_client` is what clients
    hold where the sizes of the classes are multiples of the shards', or fewer.

    Args:
        config: numbers of clients and of shards for each.
        dataset: whose training rows are shared.
        seed: of the run, >= 0.

    Raises:
        ScenarioError: more classes per client than there are, or fewer rows than
            shards, or rows whose frames have classes of their own.

    Source: McMahan et al. (2017), section 3, "pathological non-IID partition".
    """
    _refuse_frames(config, dataset)
    each, num_rows = config.classes_per_client, len(dataset.y_train)
    if each > dataset.num_classes:
        raise ScenarioError(
            f"problem.partition.classes_per_client must be at most the "
            f"{dataset.num_classes} classes of {dataset.name}, got {each}; lower it"
        )
    num_shards = config.clients * each
    if num_shards > num_rows:
        raise ScenarioError(
            f"problem.partition.clients must be at most {num_rows // each}, so that "
            f"the {num_rows} training rows of {dataset.name} make {each} shards for "
            f"each, got {config.clients}; take fewer clients or classes per client"
        )
    order = _order(dataset, seed)
    ordered = order[np.argsort(dataset.y_train[order], kind="stable")]
    shards = np.array_split(ordered, num_shards)
    deal = Streams(seed).at(Purpose.PARTITION, DEAL, 0).permutation(num_shards)
    hands = deal.reshape(config.clients, each)
    return [np.sort(np.concatenate([shards[s] for s in hand])) for hand in hands]


def dirichlet(config: Dirichlet, dataset: Dataset, seed: int) -> Shares:
    """Returns shares whose proportions of each class follow a Dirichlet law.

    A client's number of rows of a class is within one of its proportion of them.

    Args:
        config: number of clients, concentration, and rows that each must hold.
        dataset: whose training rows are shared.
        seed: of the run, >= 0.

    Raises:
        ScenarioError: `least` rows for every client are impossible, or none of 1,000
            draws of the proportions gives them, or rows whose frames have classes of
            their own.

    Source: Yurochkin et al. (2019), section 4: p_k ~ Dir_M(alpha), and client m takes
        a proportion p_k, m of the rows of class k.
    """
    _refuse_frames(config, dataset)
    _refuse_too_many(config, dataset)
    num_rows = len(dataset.y_train)
    if config.clients * config.least > num_rows:
        raise ScenarioError(
            f"problem.partition.least must be at most {num_rows // config.clients}, so "
            f"that the {num_rows} training rows of {dataset.name} suffice for "
            f"{config.clients} clients, got {config.least}; lower it"
        )
    counts = np.bincount(dataset.y_train, minlength=dataset.num_classes)
    cuts = _cuts(config, counts, dataset.name, seed)
    order = _order(dataset, seed)
    ordered = order[np.argsort(dataset.y_train[order], kind="stable")]
    # Cut points within each class become cut points of all rows sorted by class.
    starts = (np.cumsum(counts) - counts)[:, None] + cuts
    client = np.repeat(
        np.tile(np.arange(config.clients), counts.size), np.diff(starts).ravel()
    )
    return _grouped(ordered, client, config.clients)


def sizes(config: Sizes, dataset: Dataset, seed: int) -> Shares:
    """Returns random shares of all rows, of sizes in proportion to the weights.

    Sizes are the proportions rounded down; the rows that are left go to the clients
    with the largest remainders, among equal ones to the first.

    Args:
        config: number of clients, and their weights.
        dataset: whose training rows are shared.
        seed: of the run, >= 0.

    Raises:
        ScenarioError: more clients than rows, a weight that is not positive, or so
            small that its client would hold no row.
    """
    _refuse_too_many(config, dataset)
    key = "problem.partition.weights"
    values = per_client(config.weights, config.clients, key)
    for client, value in enumerate(values):
        if not value > 0:
            raise ScenarioError(
                f"{key} must be > 0 for every client, got {float(value):g} for client "
                f"{client + 1}; raise it, or take fewer clients"
            )
    largest, num_rows = max(values), len(dataset.y_train)
    weights = np.array([float(value / largest) for value in values])
    quota = weights / weights.sum() * num_rows
    size = np.floor(quota).astype(np.int64)
    left = num_rows - size.sum()
    size[np.argsort(size - quota, kind="stable")[:left]] += 1
    if not size.all():
        client = int(size.argmin())
        raise ScenarioError(
            f"{key} must give every client one of the {num_rows} training rows of "
            f"{dataset.name}, got a share of {quota[client]:.2g} rows for client "
            f"{client + 1}; raise it, or take fewer clients"
        )
    order = _order(dataset, seed)
    return [np.sort(share) for share in np.split(order, np.cumsum(size)[:-1])]


def column(config: Column, dataset: Dataset, seed: int) -> Shares:
    """Returns groups of rows that are successive in the order of one feature.

    Rows with equal values are in one group. Each border lies between two values, as
    near as that allows to where it makes groups of equal size. Nothing is random.

    Args:
        config: number of clients, and the feature.
        dataset: whose training rows are shared.
        seed: unused.

    Raises:
        ScenarioError: an unknown column, or one with fewer values than clients.
    """
    del seed
    index = _index(config.column, dataset)
    _, value, counts = np.unique(
        dataset.x_train[:, index], return_inverse=True, return_counts=True
    )
    num_values, num_clients = counts.size, config.clients
    if num_values < num_clients:
        raise ScenarioError(
            f"problem.partition.clients must be at most the {num_values} values of "
            f"column {dataset.columns[index]!r} of {dataset.name}, got {num_clients}; "
            "take fewer clients, or another column"
        )
    ends = np.cumsum(counts)
    ideal = np.arange(1, num_clients) * (ends[-1] / num_clients)
    after = np.searchsorted(ends, ideal)
    before = np.maximum(after - 1, 0)
    nearer = ideal - ends[before] <= ends[after] - ideal
    last = np.where(nearer, before, after)
    # Every group keeps a value of its own: borders rise, and leave enough behind them.
    group = np.arange(num_clients - 1)
    last = np.maximum.accumulate(np.maximum(last - group, 0)) + group
    last = np.minimum(last, num_values - num_clients + group)
    client = np.searchsorted(last, value)
    return _grouped(np.arange(len(value)), client, num_clients)


def _cuts(
    config: Dirichlet, counts: Int[np.ndarray, " C"], name: str, seed: int
) -> Int[np.ndarray, "C M_plus_1"]:
    """Returns where the rows of each class are cut, from 0 to their number."""
    streams, best = Streams(seed), 0
    for attempt in range(ATTEMPTS):
        draw = streams.at(Purpose.PARTITION, PROPORTIONS, attempt)
        proportions: Float[np.ndarray, "C M"] = draw.dirichlet(
            np.full(config.clients, config.alpha), size=counts.size
        )
        inner = np.cumsum(proportions, axis=1)[:, :-1]
        cuts = np.zeros((counts.size, config.clients + 1), np.int64)
        cuts[:, 1:-1] = np.rint(np.minimum(inner, 1) * counts[:, None])
        cuts[:, -1] = counts
        smallest = int(np.diff(cuts).sum(axis=0).min())
        if smallest >= config.least:
            return cuts
        best = max(best, smallest)
    raise ScenarioError(
        f"problem.partition.least must be a size that every client reaches in one of "
        f"{ATTEMPTS} draws for {name}, got {config.least} where at best the smallest "
        f"client had {best}; lower it, raise alpha, or take fewer clients"
    )


def _grouped(
    rows: Int[np.ndarray, " N"], client: Int[np.ndarray, " N"], num_clients: int
) -> Shares:
    """Returns the rows of each client, whose holders are given row by row."""
    order = np.lexsort((rows, client))
    ends = np.cumsum(np.bincount(client, minlength=num_clients))
    return np.split(rows[order], ends[:-1])


def _order(dataset: Dataset, seed: int) -> Int[np.ndarray, " N"]:
    """Returns all training rows in random order."""
    draw = Streams(seed).at(Purpose.PARTITION, ORDER, 0)
    return draw.permutation(len(dataset.y_train))


def _refuse_too_many(config: Horizontal, dataset: Dataset) -> None:
    num_rows = len(dataset.y_train)
    if config.clients > num_rows:
        raise ScenarioError(
            f"problem.partition.clients must be at most the {num_rows} training rows "
            f"of {dataset.name}, got {config.clients}; take fewer clients"
        )


def _refuse_frames(config: Labels | Dirichlet, dataset: Dataset) -> None:
    if dataset.num_frames is not None:
        raise ScenarioError(
            f"problem.partition.kind must not be {config.kind!r} for {dataset.name}, "
            f"each of whose rows has {dataset.num_frames} frames with classes of their "
            "own; take iid, sizes or column"
        )


def _index(name: int | str, dataset: Dataset) -> int:
    """Returns the number of a column that is given by its name or its number."""
    if isinstance(name, str):
        if name in dataset.columns:
            return dataset.columns.index(name)
        raise ScenarioError(
            f"problem.partition.column must be a column of {dataset.name}, got "
            f"{name!r}; {hint(name, dataset.columns)}"
        )
    if name >= len(dataset.columns):
        raise ScenarioError(
            f"problem.partition.column must be at most {len(dataset.columns) - 1}, the "
            f"last column of {dataset.name}, got {name}; lower it"
        )
    return name
