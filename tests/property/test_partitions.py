"""Invariants of every partition by rows, and of every sampler."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.partitions.classes import (
    Dirichlet,
    DirichletClients,
    Labels,
)
from stalesim.simulator.catalogue.partitions.natural import Natural
from stalesim.simulator.catalogue.partitions.shares import Iid, Sizes
from stalesim.simulator.files.timeline import NO_SAMPLE, NO_WORKER, Rows
from stalesim.simulator.problem.column import ByColumn
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.data.groups import grouping
from stalesim.simulator.problem.sampler import Sampler, Sampling

SAMPLINGS: list[Sampling] = ["distinct", "replacement", "shuffled"]


@st.composite
def partitions(draw: Any) -> tuple[Any, Dataset]:
    num_rows = draw(st.integers(1, 60))
    num_classes = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    y = rng.integers(0, num_classes, num_rows).astype(np.int32)
    x = rng.integers(0, draw(st.integers(1, 60)), (num_rows, 2)).astype(np.float32)
    data = Dataset("made", x, y, x, y, num_classes, ("a", "b"))
    data = data._replace(groupings=(grouping("b", x[:, 1]),))
    kinds = ["iid", "labels", "dirichlet", "dirichlet_clients", "sizes", "column"]
    kinds += ["natural"]
    kind = draw(st.sampled_from(kinds))
    most = np.unique(x[:, 1]).size if kind in ("column", "natural") else num_rows
    clients = draw(st.integers(1, most))
    if kind == "iid":
        return Iid(clients=clients), data
    if kind == "labels":
        each = draw(st.integers(1, num_classes))
        assume(each * clients <= num_rows)
        return Labels(clients=clients, classes_per_client=each), data
    if kind == "dirichlet":
        clients = max(1, clients // 10)
        alpha = draw(st.floats(5, 100))
        return Dirichlet(clients=clients, alpha=alpha), data
    if kind == "dirichlet_clients":
        return DirichletClients(clients=clients, alpha=draw(st.floats(1e-6, 100))), data
    if kind == "sizes":
        clients = max(1, clients // 4)
        weights = tuple(draw(st.integers(1, 3)) for _ in range(clients))
        return Sizes(clients=clients, weights=weights), data
    part = Natural if kind == "natural" else ByColumn
    return part(clients=clients, column="b"), data


@settings(max_examples=200, deadline=None, derandomize=True)
@given(partitions(), st.integers(0, 2**32))
def test_every_row_has_one_holder(made: tuple[Any, Dataset], seed: int) -> None:
    config, data = made
    parts = config.make(data, seed)
    assert len(parts) == config.num_clients
    assert all(part.size and (np.diff(part) > 0).all() for part in parts)
    assert sorted(np.concatenate(parts)) == list(range(data.y_train.size))
    again = config.make(data, seed)
    assert [p.tolist() for p in again] == [p.tolist() for p in parts]
    if isinstance(config, Natural):
        held = [{*data.x_train[part, 1].tolist()} for part in parts]
        assert sum(map(len, held)) == len(set.union(*held))
        _, sizes = np.unique(data.x_train[:, 1], return_counts=True)
        counts = [part.size for part in parts]
        assert max(counts) - min(counts) <= sizes.max()
    if isinstance(config, ByColumn):
        values = [data.x_train[part, 1] for part in parts]
        highest = [part.max() for part in values[:-1]]
        assert all(a < b.min() for a, b in zip(highest, values[1:], strict=True))
    if isinstance(config, Sizes):
        total = sum(config.weights)
        for part, weight in zip(parts, config.weights, strict=True):
            assert abs(part.size - weight * data.y_train.size / total) < 1


def rows(worker: np.ndarray, job: np.ndarray) -> Rows:
    blank = np.zeros(len(worker), np.int64)
    wide = np.zeros_like(job)
    return Rows(
        time=blank.astype(float),
        kind=blank,
        node=blank,
        worker=worker,
        job=job,
        version=np.arange(len(worker)) + 3,
        read_version=wide,
        read_slot=wide,
        write_slot=blank,
        peer=blank,
        round=blank,
    )


@st.composite
def samplers(draw: Any) -> tuple[Sampler, list[np.ndarray]]:
    num_pools = draw(st.integers(1, 4))
    held = [draw(st.integers(1, 40)) for _ in range(num_pools)]
    if draw(st.booleans()):
        held[0] = 1500  # longer than the permutations that are drawn together
    pools = [1000 * m + 7 * np.arange(n) for m, n in enumerate(held)]
    sampling = draw(st.sampled_from(SAMPLINGS))
    most = 50 if sampling == "replacement" else min(held)
    sampler = Sampler(
        draw(st.integers(0, 2**32)),
        pools,
        draw(st.integers(1, most)),
        sampling=sampling,
        steps=draw(st.integers(1, 70)),
        common=draw(st.booleans()),
    )
    return sampler, pools


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(samplers(), st.integers(0, 2**32))
def test_attached_are_the_jobs_batches(made: tuple[Sampler, Any], seed: int) -> None:
    sampler, pools = made
    rng = np.random.default_rng(seed)
    worker = rng.integers(0, len(pools), (9, 2))
    worker[rng.random((9, 2)) < 0.2] = NO_WORKER
    job = rng.integers(0, 200, (9, 2))
    chunk = rows(worker, job)
    samples = sampler.attach(chunk)
    assert samples.dtype == np.int32
    assert sampler.width == sampler.steps * sampler.size
    if sampler.common:
        assert samples.shape == (9, 1, sampler.width)
        for row in range(9):
            expected = sampler.batch(0, int(chunk.version[row]))
            np.testing.assert_array_equal(samples[row, 0], expected)
        return
    assert samples.shape == (9, 2, sampler.width)
    for at in np.ndindex(9, 2):
        if worker[at] == NO_WORKER:
            assert (samples[at] == NO_SAMPLE).all()
            continue
        expected = sampler.batch(int(worker[at]), int(job[at]))
        np.testing.assert_array_equal(samples[at], expected)
        assert np.isin(samples[at], pools[worker[at]]).all()
