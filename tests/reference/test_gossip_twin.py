"""The gossip twin alone: cases by hand, and identities between the methods."""

import numpy as np

from tests.reference import gossip_twin as twin
from tests.reference.gossip_twin import Event, Method, Round

N, D, K, B = 40, 3, 4, 5
DATA = np.random.default_rng(0)
X, Y = DATA.normal(size=(N, D)), DATA.normal(size=N)
W0 = DATA.normal(size=D)


def gradient(w: np.ndarray, worker: int, batch: np.ndarray) -> np.ndarray:
    """Least squares on the shared data."""
    return X[batch].T @ (X[batch] @ w - Y[batch]) / len(batch)


def own(w: np.ndarray, worker: int, batch: np.ndarray) -> np.ndarray:
    """Pulls the worker's model to its number: no two workers agree."""
    return w - worker


def decay(t: int) -> float:
    return 0.1 / (1.0 + t)


def random_events(seed: int, num_updates: int) -> list[Event]:
    """Reads at any time, an average before most updates (A-10)."""
    rng = np.random.default_rng(seed)
    events: list[Event] = [("read", k) for k in range(K)]
    for _ in range(num_updates):
        k = int(rng.integers(K))
        if rng.random() < 0.7:
            events.append(("average", k, int((k + rng.integers(1, K)) % K)))
        batch = rng.choice(N, size=B, replace=False)
        events += [("update", k, batch, rng.normal(size=D)), ("read", k)]
    return events


ONE = np.zeros(1, dtype=int)
SCALAR: list[Event] = [
    ("read", 0),
    ("read", 1),
    ("update", 0, ONE, None),
    ("average", 0, 1),
    ("update", 1, ONE, None),
    ("read", 1),
    ("read", 0),
    ("average_all",),
    ("update", 1, ONE, None),
    ("update", 0, ONE, None),
]


APART = Method(lambda w, k, _: w - 8.0 * k, lambda _: 0.5)


def test_gossip_by_hand():
    # g = w_hat - 8 k, eta = 1/2, from 16. w0: 16 -> 8; mean 12, 12; w1 - (16 - 8) / 2
    # = 8; both read, 8 and 12; mean 10, 10; w1 - (8 - 8) / 2 = 10; w0 - 12 / 2 = 4.
    trace = twin.gossip(np.array([16.0]), 2, SCALAR, APART)
    expected = [[8.0, 16.0], [12.0, 8.0], [10.0, 10.0], [4.0, 10.0]]
    np.testing.assert_array_equal(trace.models[:, :, 0], expected)
    np.testing.assert_array_equal(trace.staleness, [0, 1, 0, 1])
    np.testing.assert_array_equal(trace.theta[:, 0], [12.0, 10.0, 10.0, 7.0])
    np.testing.assert_array_equal(trace.consensus, [16.0, 4.0, 0.0, 9.0])


def test_age_weighted_by_hand():
    # Ages 1, 0 at the pair's average: both become w0 = 8 with age 1; w1 - 4 = 4, age 2;
    # read 4 and 8; then ages 1, 2: (8 + 2 * 4) / 3 = 16 / 3, age 2 for both.
    trace = twin.gossip(np.array([16.0]), 2, SCALAR, APART, by_age=True)
    expected = [[8.0, 16.0], [8.0, 4.0], [16 / 3, 22 / 3], [4 / 3, 22 / 3]]
    np.testing.assert_allclose(trace.models[:, :, 0], expected, rtol=1e-15)
    np.testing.assert_array_equal(trace.ages, [[1, 0], [1, 2], [2, 3], [3, 3]])


def test_gossip_is_algorithm_1_in_matrices():
    # W <- W A_t, then column k <- column k - eta g~; reads follow each update.
    events = random_events(4, 40)
    models = np.tile(W0[:, None], (1, K))
    hats = models.copy()
    expected = []
    for event in events:
        if event[0] == "read":
            hats[:, event[1]] = models[:, event[1]]
        elif event[0] == "average":
            apart = np.eye(K)[event[1]] - np.eye(K)[event[2]]
            models = models @ (np.eye(K) - np.outer(apart, apart) / 2)
        elif event[0] == "update":
            _, k, batch, noise = event
            assert noise is not None
            total = sum(gradient(hats[:, k], k, batch[[b]]) for b in range(B))
            step = decay(len(expected)) / B
            models = models - np.outer(step * (total + 2.0 * noise), np.eye(K)[k])
            expected.append(models.T)
    trace = twin.gossip(W0, K, events, Method(gradient, decay, 2.0))
    np.testing.assert_allclose(trace.models, expected, rtol=1e-11, atol=1e-12)


def test_d_psgd_by_hand():
    # From 0, g_i = w - i, eta = 1: first w = i; then W i - (i - i).
    pair = np.array([[0.75, 0.25], [0.25, 0.75]])
    rounds: list[Round] = [[(ONE, None)] * 2] * 3
    method = Method(own, lambda _: 1.0)
    trace = twin.in_rounds(np.zeros(1), [pair] * 3, rounds, method, steps_first=False)
    # Third: W (1/4, 3/4) = (3/8, 5/8), minus (1/4 - 0, 3/4 - 1).
    expected = [[0.0, 1.0], [0.25, 0.75], [0.125, 0.875]]
    np.testing.assert_array_equal(trace.z[:, :, 0], expected)
    np.testing.assert_array_equal(twin.consensus_of(trace), [0.25, 0.0625, 0.140625])


# j sends to i: columns sum to one, rows do not.
LOPSIDED = np.array(
    [
        [0.5, 0.5, 0.0, 1 / 3],
        [0.5, 0.0, 0.0, 1 / 3],
        [0.0, 0.5, 0.5, 0.0],
        [0.0, 0.0, 0.5, 1 / 3],
    ]
)


def test_push_agrees_on_the_mean():
    # One step of size 1 to the worker's number, then only mixing: all z -> 1.5.
    rounds: list[Round] = [[(ONE, None)] * K] * 200
    method = Method(own, lambda t: float(t == 0))
    pushed = twin.in_rounds(np.zeros(1), [LOPSIDED] * 200, rounds, method)
    np.testing.assert_allclose(pushed.z[-1], 1.5, rtol=1e-12)
    assert np.abs(pushed.x[-1] - 1.5).max() > 0.1
