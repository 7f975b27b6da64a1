"""Batches of one job or of several local steps: bits, epochs, independence."""

from itertools import pairwise

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.files.timeline import Kind, Rows
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.sampler import Sampler, Sampling
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from tests.support import everything, played


def rows_of(client: np.ndarray, job: np.ndarray) -> Rows:
    """Returns a commit for each of some jobs."""
    number = np.zeros(client.size, np.int32)
    columns = dict.fromkeys(Rows._fields, number)
    columns |= {
        "kind": number + Kind.COMMIT,
        "worker": client[:, None],
        "job": job[:, None],
    }
    return Rows(**columns)


POOLS = [np.arange(9), np.arange(100, 140), np.arange(1000, 1500)]
JOBS = ((0, 0), (1, 17), (2, 40))


@pytest.mark.parametrize(
    ("size", "sampling", "expected"),
    [
        (
            5,
            "distinct",
            [
                [8, 1, 5, 4, 2],
                [115, 126, 133, 107, 118],
                [1435, 1425, 1251, 1339, 1419],
            ],
        ),
        (
            7,
            "distinct",
            [
                [8, 1, 5, 4, 2, 7, 6],
                [115, 126, 133, 107, 118, 136, 124],
                [1435, 1425, 1251, 1339, 1419, 1097, 1316],
            ],
        ),
        (
            5,
            "replacement",
            [
                [8, 0, 5, 8, 3],
                [115, 126, 133, 107, 118],
                [1435, 1425, 1251, 1339, 1419],
            ],
        ),
    ],
)
def test_bits_of_one_step_never_change(
    size: int, sampling: Sampling, expected: list[list[int]]
) -> None:
    sampler = Sampler(3, POOLS, size, sampling=sampling)
    assert [sampler.batch(*job).tolist() for job in JOBS] == expected
    assert (sampler.size, sampler.steps, sampler.width) == (size, 1, size)


def test_bits_of_a_common_batch_never_change() -> None:
    sampler = Sampler(11, [np.arange(50)], 4, common=True)
    assert sampler.batch(0, 21).tolist() == [35, 45, 48, 25]


def test_bits_of_shuffled_batches_never_change() -> None:
    sampler = Sampler(3, POOLS, 5, sampling="shuffled")
    assert [sampler.batch(*job).tolist() for job in JOBS] == [
        [5, 3, 1, 2, 4],
        [122, 102, 137, 107, 105],
        [1437, 1445, 1390, 1322, 1240],
    ]


def test_replacement_is_another_name() -> None:
    one = Sampler(3, POOLS, 5, sampling="replacement")
    other = Sampler(3, POOLS, 5, sampling="replacement")
    assert one.batch(2, 9).tolist() == other.batch(2, 9).tolist()


@pytest.mark.parametrize("n", [7, 100, 1500])
@pytest.mark.parametrize(("size", "steps"), [(7, 1), (3, 1), (2, 5), (5, 400)])
def test_shuffled_epochs_are_permutations(n: int, size: int, steps: int) -> None:
    sampler = Sampler(
        5, [np.arange(n), np.arange(n)], size, sampling="shuffled", steps=steps
    )
    jobs = -(-4 * n // sampler.width)
    sequence = np.concatenate([sampler.batch(1, job) for job in range(jobs)])
    epochs = sequence[: 4 * n].reshape(4, n)
    np.testing.assert_array_equal(np.sort(epochs), np.tile(np.arange(n), (4, 1)))
    assert all((a != b).any() for a, b in pairwise(epochs))
    other = np.concatenate([sampler.batch(0, job) for job in range(jobs)])
    assert (other != sequence).any()


def test_the_sequence_does_not_depend_on_how_it_is_cut() -> None:
    def sequence(size: int, steps: int) -> np.ndarray:
        sampler = Sampler(5, POOLS, size, sampling="shuffled", steps=steps)
        jobs = range(120 // sampler.width)
        return np.concatenate([sampler.batch(1, job) for job in jobs])

    np.testing.assert_array_equal(sequence(4, 1), sequence(2, 3))


def test_every_position_of_an_epoch_is_uniform() -> None:
    n, epochs = 6, 6000
    sampler = Sampler(1, [np.arange(n)], n, sampling="shuffled")
    order = np.stack([sampler.batch(0, job) for job in range(epochs)])
    counts = np.stack([np.bincount(order[:, place]) for place in range(n)])
    # Each of 36 counts is binomial; 5 standard deviations.
    bound = 5 * np.sqrt(epochs * (1 / n) * (1 - 1 / n))
    assert np.abs(counts - epochs / n).max() < bound
    # Successive epochs are independent: the first place repeats with chance 1/n.
    repeats = (order[1:, 0] == order[:-1, 0]).sum()
    assert abs(repeats - epochs / n) < bound


@pytest.mark.parametrize("steps", [2, 16, 40])
@pytest.mark.parametrize("size", [3, 7])
def test_distinct_steps_are_batches_of_their_own(size: int, steps: int) -> None:
    sampler = Sampler(2, POOLS, size, steps=steps)
    sets = []
    for job in range(400 // steps):
        batches = sampler.batch(0, job).reshape(steps, size)
        assert all(np.unique(batch).size == size for batch in batches)
        sets += [frozenset(batch.tolist()) for batch in batches]
    # A sample is in a batch with chance size/9: 5 standard deviations of 400 batches.
    chance = size / 9
    bound = 5 * np.sqrt(400 * chance * (1 - chance))
    for sample in range(9):
        assert abs(sum(sample in s for s in sets) - 400 * chance) < bound
    # Successive batches agree by chance only: one of 84 sets of 3, or 36 sets of 7.
    same = sum(a == b for a, b in pairwise(sets))
    assert same < 399 / 36 + 5 * np.sqrt(399 / 36)


@pytest.mark.parametrize("sampling", ["distinct", "replacement"])
@pytest.mark.parametrize("n", [4, 9])  # ordered as a whole; drawn one by one
def test_all_sequences_of_samples_are_equally_likely(
    n: int, sampling: Sampling
) -> None:
    size, jobs = 2, 20_000
    sampler = Sampler(7, [np.arange(n)] * 2, size, sampling=sampling)
    client, job = np.arange(jobs) % 2, np.arange(jobs) // 2
    drawn = sampler.attach(rows_of(client, job))[:, 0]
    counts = np.bincount(drawn[:, 0] * n + drawn[:, 1], minlength=n * n)
    same = np.arange(n) * (n + 1)
    if sampling == "distinct":
        assert not counts[same].any()
        counts = np.delete(counts, same)
    # Pearson's statistic has mean k and variance 2 k (1 - 1 / jobs), to which equal
    # chances add nothing more; 5 standard deviations of it.
    expected, k = jobs / counts.size, counts.size - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert abs(statistic - k) < 5 * np.sqrt(2 * k)


def test_batches_of_a_row_are_independent() -> None:
    n, jobs = 5, 20_000
    sampler = Sampler(7, [np.arange(n)] * 2, 1, steps=2)
    drawn = sampler.attach(rows_of(np.arange(jobs) % 2, np.arange(jobs) // 2))[:, 0]
    pairs = {
        "local steps": drawn,
        "clients": drawn[:, 0].reshape(-1, 2),
        "successive jobs": drawn[::2, 0].reshape(-1, 2),
    }
    for name, pair in pairs.items():
        counts = np.bincount(pair[:, 0] * n + pair[:, 1], minlength=n * n)
        expected, k = pair.shape[0] / counts.size, counts.size - 1
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert abs(statistic - k) < 5 * np.sqrt(2 * k), name


@pytest.mark.parametrize("size", [1, 8, 9, 10, 39, 40])
def test_batches_do_not_depend_on_what_is_drawn_with_them(size: int) -> None:
    # Pools below, at and above the bound of those that are put into order.
    pools = [np.arange(40), np.arange(100, 140), np.arange(1000, 1500)]
    sampler = Sampler(5, pools, size, steps=3)
    rng = np.random.default_rng(1)
    client, job = rng.integers(0, 3, 3_000), rng.integers(0, 2_000, 3_000)
    drawn = sampler.attach(rows_of(client, job))[:, 0]
    batches = np.sort(drawn.reshape(-1, size), axis=1)
    assert (batches[:, 1:] != batches[:, :-1]).all()
    for row in range(0, 3_000, 97):
        alone = sampler.attach(rows_of(client[row : row + 1], job[row : row + 1]))
        np.testing.assert_array_equal(alone[0, 0], drawn[row])
        own = sampler.batch(int(client[row]), int(job[row]))
        np.testing.assert_array_equal(own, drawn[row])


@pytest.mark.parametrize("sampling", ["distinct", "shuffled"])
def test_a_batch_larger_than_the_smallest_pool(sampling: Sampling) -> None:
    with pytest.raises(ScenarioError, match="at most the 9 samples of a client, got 1"):
        Sampler(0, POOLS, 10, sampling=sampling)
    assert Sampler(0, POOLS, 9, sampling=sampling, steps=3).batch(0, 5).size == 27
    assert Sampler(0, POOLS, 10, sampling="replacement").batch(0, 5).size == 10


def test_the_rows_of_a_sequential_round_share_a_batch() -> None:
    clients = Clients(compute=Scipy(law="expon"))
    rows, *_ = everything(played(Rounds(order="sequential"), clients, 5, rounds=40))
    pool = [np.arange(10**6)]
    sampler = Sampler(3, pool, 6, common=True, by_round=True)
    samples = sampler.attach(rows)
    assert samples.shape == (200, 1, 6)
    of_rounds = samples.reshape(40, 5, 6)
    assert (of_rounds == of_rounds[:, :1]).all()
    # 240 draws of a million: some agree with chance 0.03, but no whole batches.
    assert len({tuple(batch) for batch in of_rounds[:, 0].tolist()}) == 40
    # Whole rounds or not, a part of the rows has the samples that it has in all.
    np.testing.assert_array_equal(sampler.attach(rows.slice(7, 23)), samples[7:23])
    # A parallel round has the same batch in its one row.
    parallel, *_ = everything(played(Rounds(), clients, 5, rounds=40))
    np.testing.assert_array_equal(sampler.attach(parallel), of_rounds[:, :1])
    by_version = Sampler(3, pool, 6, common=True).attach(rows)
    assert len({tuple(batch) for batch in by_version[:, 0].tolist()}) == 200
