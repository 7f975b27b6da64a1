"""The twin of VAFL against what it claims: objectives and eq. (3).

Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding
gives about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7. Everything
else compares float64 sums of a few dozen terms of order 1: rtol 1e-12, atol 1e-12.
"""

import numpy as np
import pytest

from tests.reference import vafl_twin
from tests.reference.vafl_twin import Commit, Options, Refresh

WIDTHS = (3, 2, 4)
NUM_SAMPLES = 12
NUM_PARTIES = len(WIDTHS)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
LOSSES = pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
REDUCTIONS = pytest.mark.parametrize("reduction", ["mean", "sum"])
POINTS = pytest.mark.parametrize("server_gradient", ["before", "after"])
ORDERS = pytest.mark.parametrize("client_order", ["upload_first", "query_first"])
UPLOADS = pytest.mark.parametrize("upload", ["batch", "all"])


def options(**changes) -> Options:
    """Step sizes that differ between server, clients and commits."""
    defaults = Options(
        upload="batch",
        client_order="upload_first",
        server_gradient="before",
        coordinated=False,
        loss="softmax",
        reduction="mean",
        l2=0.05,
        step_size=lambda k: 0.3 / (1 + k),
        server_step_size=lambda k: 0.2 / (1 + k),
    )
    return defaults._replace(**changes)


def num_outputs_of(loss: str) -> int:
    return 3 if loss == "softmax" else 1


def problem(loss: str, seed: int = 0) -> dict:
    """Features, labels and a random initial model, as arguments of `run`."""
    generator = np.random.default_rng(seed)
    num_outputs = num_outputs_of(loss)
    return {
        "features": [generator.normal(size=(NUM_SAMPLES, p)) for p in WIDTHS],
        "labels": generator.integers(max(2, num_outputs), size=NUM_SAMPLES),
        "num_outputs": num_outputs,
        "theta": [generator.normal(size=(p, num_outputs)) for p in WIDTHS],
        "bias": generator.normal(size=num_outputs),
    }


def gaussian_noise(num_outputs: int):
    """A pure function of its key, as the twin asks for."""

    def draw(party: int, job: int, sample: int) -> np.ndarray:
        key = [party, job + 1, sample]
        return np.random.default_rng(key).normal(size=num_outputs)

    return draw


def random_rows(seed: int, num_rows: int = 25, *, refreshes: bool = False) -> list:
    """Commits of one to three parties, batches of 4 with repeats, fresh job numbers."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(num_rows):
        size = int(generator.integers(1, NUM_PARTIES + 1))
        chosen = generator.choice(NUM_PARTIES, size=size, replace=False)
        parties = tuple(int(party) for party in chosen)
        jobs = (number,) * size
        if refreshes and number % 3 == 1:
            batch = generator.integers(NUM_SAMPLES, size=4)
            rows.append(Refresh(parties, jobs, batch, bound=3))
        else:
            batches = tuple(
                generator.integers(NUM_SAMPLES, size=4) for _ in range(size)
            )
            rows.append(Commit(parties, jobs, batches))
    return rows


def central_difference(function, point: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[index] = 1e-6
        gradient[index] = (function(point + step) - function(point - step)) / 2e-6
    return gradient


def cross_entropy(scores: np.ndarray, labels: np.ndarray, loss: str, reduction: str):
    """Written with probabilities, apart from the twins' logarithms."""
    if loss == "softmax":
        exponentials = np.exp(scores)
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    else:
        positive = 1 / (1 + np.exp(-scores[:, 0]))
        probabilities = np.stack([1 - positive, positive], axis=1)
    values = -np.log(probabilities[np.arange(len(labels)), labels])
    return values.mean() if reduction == "mean" else values.sum()


@LOSSES
@REDUCTIONS
@POINTS
@pytest.mark.parametrize("private", [False, True])
def test_gradients_of_a_stale_commit(loss, reduction, server_gradient, private):
    """Party 1 alone commits after party 0 moved: others' stored values are constants.

    Args of the objective are party 1's theta and the bias; its own draw of the noise
    is held while theta varies (V-17). Batches repeat sample 3.
    """
    setting = problem(loss)
    draw = gaussian_noise(setting["num_outputs"]) if private else None
    first = Commit((0,), (0,), (np.array([0, 1, 3]),))
    batch = np.array([3, 7, 3, 1])
    second = Commit((1,), (1,), (batch,))
    variant = options(loss=loss, reduction=reduction, server_gradient=server_gradient)
    one = vafl_twin.run(**setting, rows=[first], options=variant, noise=draw)
    two = vafl_twin.run(**setting, rows=[first, second], options=variant, noise=draw)

    others = one.table[batch][:, [0, 2]].sum(axis=1)
    own_noise = np.array([draw(1, 1, n) for n in batch]) if private else 0.0

    def objective(theta, bias):
        scores = others + setting["features"][1][batch] @ theta + own_noise + bias
        data = cross_entropy(scores, setting["labels"][batch], loss, reduction)
        return data + 0.05 / 2 * np.sum(theta**2)

    server = central_difference(lambda b: objective(one.theta[1], b), one.bias)
    point = two.bias if server_gradient == "after" else one.bias
    client = central_difference(lambda t: objective(t, point), one.theta[1])
    np.testing.assert_allclose((one.bias - two.bias) / 0.1, server, atol=1e-7)
    np.testing.assert_allclose((one.theta[1] - two.theta[1]) / 0.15, client, atol=1e-7)
    norm = np.sqrt(np.sum(server**2) + np.sum(client**2))
    np.testing.assert_allclose(two.gradient_norm[1], norm, atol=1e-6)
    regulariser = 0.05 / 2 * np.sum(one.theta[1] ** 2)
    expected_loss = objective(one.theta[1], point) - regulariser
    np.testing.assert_allclose(two.loss[1], expected_loss, **CLOSE)
    for party in (0, 2):
        np.testing.assert_array_equal(one.theta[party], two.theta[party])


@LOSSES
def test_full_coordinated_step_is_gradient_descent_on_equation_1(loss):
    setting = problem(loss)
    whole = np.arange(NUM_SAMPLES)
    row = Commit((0, 1, 2), (0, 0, 0), (whole, whole, whole))
    trace = vafl_twin.run(
        **setting, rows=[row], options=options(loss=loss, coordinated=True)
    )

    def objective(bias, *theta):
        pairs = zip(setting["features"], theta, strict=True)
        scores = sum(block @ model for block, model in pairs) + bias
        data = cross_entropy(scores, setting["labels"], loss, "mean")
        return data + 0.05 / 2 * sum(np.sum(model**2) for model in theta)

    start = setting["theta"]
    server = central_difference(lambda b: objective(b, *start), setting["bias"])
    np.testing.assert_allclose((setting["bias"] - trace.bias) / 0.2, server, atol=1e-7)
    for party in range(NUM_PARTIES):

        def of_one(model, party=party):
            moved = [*start[:party], model, *start[party + 1 :]]
            return objective(setting["bias"], *moved)

        client = central_difference(of_one, start[party])
        step = (start[party] - trace.theta[party]) / 0.3
        np.testing.assert_allclose(step, client, atol=1e-7)


def upload_log(rows: list, upload: str) -> list[tuple[int, int, int]]:
    """(iteration, party, sample) of every upload, in order of the rows."""
    log = [(-1, m, n) for m in range(NUM_PARTIES) for n in range(NUM_SAMPLES)]
    k = 0
    for row in rows:
        if isinstance(row, Refresh):
            for m in row.parties:
                stamps = latest(log)
                overdue = {n for n in row.batch if k - stamps[n, m] > row.bound}
                if overdue and upload == "all":
                    overdue = set(range(NUM_SAMPLES))
                log += [(k, m, int(n)) for n in overdue]
        else:
            for m, batch in zip(row.parties, row.batches, strict=True):
                samples = range(NUM_SAMPLES) if upload == "all" else set(batch)
                log += [(k, m, int(n)) for n in samples]
            k += 1
    return log


def latest(log: list[tuple[int, int, int]]) -> np.ndarray:
    """Iteration of the last upload of each pair, [N, M]."""
    stamps = np.full((NUM_SAMPLES, NUM_PARTIES), -2)
    for k, m, n in log:
        stamps[n, m] = max(stamps[n, m], k)
    return stamps


@UPLOADS
@ORDERS
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ages_follow_equation_3(upload, client_order, seed):
    """Against the last upload of each pair, looked up in a log of uploads."""
    rows = random_rows(seed, refreshes=True)
    variant = options(upload=upload, client_order=client_order)
    trace = vafl_twin.run(**problem("softmax"), rows=rows, options=variant)

    k = 0
    last_batch = {}
    for number, row in enumerate(rows):
        if isinstance(row, Refresh):
            continue
        # Upload first: this commit's uploads are in the table. Query first: not yet.
        seen = number + 1 if client_order == "upload_first" else number
        now = k - latest(upload_log(rows[:seen], upload))
        for got, party, batch in zip(
            trace.ages[k], row.parties, row.batches, strict=True
        ):
            if client_order == "upload_first":
                asked = batch
                assert (got[:, party] == 0).all()
            else:
                asked = last_batch.get(party, batch)
            np.testing.assert_array_equal(got, now[asked])
            last_batch[party] = batch
        k += 1
    np.testing.assert_array_equal(trace.stamps, latest(upload_log(rows, upload)))
    np.testing.assert_array_equal(trace.table_ages, k - trace.stamps)
    assert len(trace.ages) == len(trace.loss) == len(trace.gradient_norm) == k


def test_query_first_of_one_party_by_hand():
    """One party: theta moves on the previous batch, the bias on the new one."""
    setting = problem("softmax")
    features, labels = setting["features"][0], setting["labels"]
    theta, bias = setting["theta"][0], setting["bias"]
    batches = [np.array([0, 1]), np.array([2, 3]), np.array([3, 4])]
    rows = [Commit((0,), (k,), (batch,)) for k, batch in enumerate(batches)]
    one_party = {**setting, "features": [features], "theta": [theta]}
    traces = [
        vafl_twin.run(
            **one_party,
            rows=rows,
            options=options(client_order="query_first", server_gradient=point),
        )
        for point in ("before", "after")
    ]

    losses = []
    for k, batch in enumerate(batches):
        asked = batches[max(k - 1, 0)]

        def residual(samples, theta, bias):
            exponentials = np.exp(features[samples] @ theta + bias)
            probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
            return (probabilities - np.eye(3)[labels[samples]]) / len(samples)

        scores = features[asked] @ theta + bias
        losses.append(cross_entropy(scores, labels[asked], "softmax", "mean"))
        gradient = features[asked].T @ residual(asked, theta, bias) + 0.05 * theta
        theta = theta - 0.3 / (1 + k) * gradient
        bias = bias - 0.2 / (1 + k) * residual(batch, theta, bias).sum(axis=0)

    for trace in traces:
        np.testing.assert_allclose(trace.theta[0], theta, **CLOSE)
        np.testing.assert_allclose(trace.bias, bias, **CLOSE)
        np.testing.assert_allclose(trace.loss, losses, **CLOSE)
        assert [ages[0][:, 0].tolist() for ages in trace.ages] == [[1, 1]] * 3
