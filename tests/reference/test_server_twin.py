"""The twin of servers against hand-computed cases.

Many use one sample with the feature 1 (and the bias's 1) under the sigmoid: label 1 at
weights [w, b] has the gradient -p (1, 1), p = 1 / (1 + e^{w + b}), which is 1/2 at
zero. Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding
gives about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7. Two ways to
the same float64 model agree to 1e-12.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.reference import events_twin as events
from tests.reference import server_twin as twin
from tests.reference.server_twin import Job, Problem, Row

ONE = Problem(np.array([[1.0, 1.0]]), np.array([1]), "sigmoid")
"""The sample of the module's docstring; 0 is its id."""
ZERO, FIRST = np.zeros((1, 2)), np.array([0])
NOISE = np.array([[1.0, -2.0]])
SGD: dict[str, Any] = {"kind": "sgd", "step_size": 1.0}


def p(score: float) -> float:
    return 1.0 / (1.0 + math.exp(score))


def send(version: int, steps: int = 1, noise: Any = None, client: int = 0) -> Job:
    return Job(client, 0, version, [FIRST] * steps, noise=noise)


def commit(*jobs: Job) -> Row:
    return Row(jobs, commits=True)


def run(
    o: dict[str, Any], *rows: Row, problem: Problem = ONE, start: Any = ZERO
) -> twin.Server:
    server = twin.Server(problem, start, 1, *twin.rates_of(o))
    return twin.play(server, twin.chain_of(twin.opened(o), twin.STAGES), rows)


def firsts(server: twin.Server) -> list[float]:
    """Returns the first number of each version."""
    return [float(np.ravel(model)[0]) for model in server.models]


LOSSES = [("softmax", 3), ("sigmoid", 1), ("hinge", 3), ("hinge", 1), ("squared", 0)]


@pytest.mark.parametrize(("loss", "outputs"), LOSSES)
def test_gradient_is_that_of_the_objective(loss: str, outputs: int) -> None:
    r = np.random.default_rng(1)
    x = np.hstack([r.normal(size=(5, 3)), np.ones((5, 1))])
    y = r.normal(size=(5, 4)) if not outputs else r.integers(max(2, outputs), size=5)
    problem = Problem(x, y, loss, l2=0.05)
    w = r.normal(size=(outputs, 4) if outputs else 4)
    _, gradient, cut = twin.of_batch(problem, w, range(5))
    assert cut == 0.0
    for entry in np.ndindex(w.shape):
        move = np.zeros_like(w)
        move[entry] = 1e-6
        ends = [twin.objective(problem, w + sign * move) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(gradient[entry], slope, atol=1e-7)


def test_losses_by_hand() -> None:
    z = np.array([2.0, 1.0, -2.0])
    softmax, _ = twin.loss_and_slopes("softmax", z, 0)
    assert softmax == pytest.approx(math.log(1 + math.exp(-1) + math.exp(-4)))
    assert twin.loss_and_slopes("hinge", z, 0)[0] == 2.0
    for label, hinge in ((1, 0.75), (0, 1.25)):
        loss, slopes = twin.loss_and_slopes("hinge", np.array([0.25]), label)
        sign = 2.0 * label - 1.0
        assert (loss, slopes[0]) == (hinge, -sign)
        loss, _ = twin.loss_and_slopes("sigmoid", np.array([0.25]), label)
        assert loss == pytest.approx(math.log1p(math.exp(-sign * 0.25)))
    for kink in ([1.0], [-1.0, 1.0, -1.0]):
        assert not twin.loss_and_slopes("hinge", np.array(kink), 1)[1].any()
    for score in (-1000.0, 1000.0):
        loss, slopes = twin.loss_and_slopes("sigmoid", np.array([score]), 1)
        assert (loss, slopes[0]) == (max(0.0, -score), -float(score < 0))


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("constant", {}, [1, 1, 1, 1]),
        ("polynomial", {"exponent": 2.0}, [1, 1 / 4, 1 / 36, 1 / 100]),
        ("hinge", {"slope": 10.0, "late": 4.0}, [1, 1, 1 / 11, 1 / 51]),
        ("hinge", {"slope": 2.0, "late": 0.5}, [1, 1 / 2, 1 / 10, 1 / 18]),
        ("inverse", {"concurrency": 1}, [1, 1, 1 / 5, 1 / 9]),
        ("inverse", {"concurrency": 3}, [1, 1, 3 / 5, 3 / 9]),
        # 4 L step = 0.4: 1 / (0.4 s).
        (
            *("delay_adaptive", {"smoothness": 0.5, "concurrency": 0}),
            [1, 1, 1 / 2, 1 / 3.6],
        ),
        (
            *("delay_adaptive", {"smoothness": 0.5, "concurrency": 5}),
            [1, 1, 1, 1 / 3.6],
        ),
        ("inverse_share", {"shares": [1, 3]}, [2 / 3] * 4),
        ("repeats", {"base": 3}, [1 / 6] * 4),
    ],
)
def test_weights_at_0_1_5_9(kind: str, options: Any, expected: list[float]) -> None:
    server = twin.Server(ONE, ZERO, 2, 1.0, 0.2)
    jobs = [Job(1, 0, 0, staleness=s) for s in (0, 1, 5, 9)]
    seen = Counter({0: 1, 1: 2})
    found = [twin.weight_of(server, job, kind, options, seen) for job in jobs]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


MOMENTS = {"decay": 0.5, "second_decay": 0.75, "small": 0.1}
TWO_STEPS: dict[str, tuple[dict[str, Any], tuple[float, float]]] = {
    "momentum": ({"decay": 0.5}, (1.0, -1.5)),
    # Moments 0.5, 0.25, then 0.25 - 1 = -0.75 and 0.1875 + 1 = 1.1875.
    "adam": (MOMENTS, (1 / 1.1, -0.75 / 0.75 / (math.sqrt(1.1875 / 0.4375) + 0.1))),
    "adagrad": (MOMENTS, (1 / math.sqrt(1.1), -2 / math.sqrt(5.1))),
    "rmsprop": (MOMENTS, (1 / math.sqrt(0.35), -2 / math.sqrt(1.2875))),
    # The first second moment, 1e-6 + 0.25, is below 4.
    "yogi": (
        MOMENTS,
        (
            (0.5 + 5e-7) / 0.5 / (math.sqrt((0.25 + 1e-6) / 0.25) + 0.1),
            (0.25 + 2.5e-7 - 1) / 0.75 / (math.sqrt((1.25 + 1e-6) / 0.4375) + 0.1),
        ),
    ),
    "sgd": ({"momentum": 0.5, "nesterov": True}, (1.5, -2.75)),
    # Moments 0.1 and 0.01, then -0.11 and 0.0499.
    "amsgrad": (
        {"b1": 0.9, "b2": 0.99, "eps": 0.1},
        (0.1 / (math.sqrt(0.01) + 0.1), -0.11 / (math.sqrt(0.0499) + 0.1)),
    ),
    "delayed_nesterov": ({"decay": 0.5, "period": 2, "spread": 0.0}, (0.5, -1.25)),
}


@pytest.mark.parametrize("kind", TWO_STEPS)
def test_two_directions_of_1_and_then_minus_2(kind: str) -> None:
    options, expected = TWO_STEPS[kind]
    rule, w = twin.Optimizer({"kind": kind, **options}), np.zeros(1)
    found = [float(rule(np.array([g]), w, t)[0]) for t, g in enumerate((1.0, -2.0))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_local_steps_are_summed_and_pulled_back() -> None:
    # Both weights move by half of p, so that the score moves by p.
    scores = [0.0]
    for _ in range(2):
        scores.append(scores[-1] + p(scores[-1]))
    o = SGD | {"step_size": 2.0, "local_step_size": 0.5}
    server = run(o, commit(send(0, steps=3)))
    moved = sum(map(p, scores))
    np.testing.assert_allclose(server.models[1], np.full((1, 2), 2 * moved))
    loss = np.mean([math.log1p(math.exp(-z)) for z in scores])
    assert server.rows[0]["loss"] == pytest.approx(loss)
    # After a step both weights are 1/4: p(1/2), pulled by 0.4 / 4.
    o = {"kind": "fed_async", "step_size": 0.5, "mixing": 0.8, "proximal": 0.4}
    o |= {"weight": {"kind": "polynomial", "exponent": 1.0}}
    server = run(o, commit(send(0, steps=2)), commit(send(0)))
    first = 0.8 * 0.5 * (0.5 + p(0.5) - 0.1)
    expected = [0.0, first, 0.6 * first + 0.4 * 0.25]
    np.testing.assert_allclose(firsts(server), expected)


@pytest.mark.parametrize("clip", ["sample", "contribution"])
def test_clipping_and_its_noise(clip: str) -> None:
    # Gradients -(3, 1) / 2 and +(0, 1) / 2; norms sqrt(2.5) and 1 / 2.
    x = np.array([[3.0, 1.0], [0.0, 1.0]])
    problem = Problem(x, np.array([1, 0]), "sigmoid")
    mechanism = {"clip_bound": 0.6, "multiplier": 0.25, "clip": clip}
    job = Job(0, 0, 0, [np.array([0, 1])], noise=NOISE)
    server = run(SGD | {"mechanism": mechanism}, commit(job), problem=problem)
    if clip == "sample":  # sensitivity 2 * 0.6 / 2
        cut = 0.6 * np.array([[-3.0, -1.0]]) / math.sqrt(10.0)
        sent = (cut + np.array([[0.0, 0.5]])) / 2 + 0.25 * 0.6 * NOISE
        share = 0.5
    else:  # the mean is -(3, 0) / 4
        sent, share = np.array([[-0.6, 0.0]]) + 0.25 * 1.2 * NOISE, 1.0
    np.testing.assert_allclose(server.models[1], -sent, rtol=1e-12)
    assert server.rows[0]["clipped"] == share


def test_the_regulariser_is_clipped_with_each_sample() -> None:
    problem, w = ONE._replace(l2=10.0), np.array([[1.0, -1.0]])  # score 0
    _, found, cut = twin.of_batch(problem, w, FIRST, 0.5)
    exact = np.array([[9.5, -0.5]])
    np.testing.assert_allclose(found, 0.5 * exact / np.linalg.norm(exact))
    assert cut == 1.0
    assert not twin.clipped(np.zeros(2), 1.0).any()


@pytest.mark.parametrize("adaptive", [False, True])
def test_compensation(adaptive: bool) -> None:
    o = SGD | {
        "compensation": {"strength": 0.3, "adaptive": adaptive, "decay": 0.75},
    }
    server = run(o, commit(send(0)), commit(send(0)))
    # g = -1/2 twice; MeanSquare 1/16, then 3/64 + 1/16 = 7/64; now - read = 1/2.
    strength = 0.3 / math.sqrt(7 / 64 + 1e-7) if adaptive else 0.3
    expected = [0.0, 0.5, 1.0 - strength * 0.25 * 0.5]
    np.testing.assert_allclose(firsts(server), expected)


def test_a_mean_is_over_contributions_and_not_over_weights() -> None:
    o = SGD | {"weight": {"kind": "polynomial", "exponent": 1.0}}
    server = run(o, commit(send(0)), commit(send(0), send(1)))
    # At version 1 both weights are 1 / 2.
    moved = (0.5 * 0.5 + p(1.0)) / 2.0
    np.testing.assert_allclose(server.models[2], server.models[1] + moved)
    assert server.rows[1]["weight"] == 0.75


def test_a_buffer_by_hand() -> None:
    o = {"kind": "fed_buff", "step_size": 0.2, "server_step_size": 3.0}
    o |= {"weight": {"kind": "polynomial", "exponent": 1.0}}
    rows = [
        Row([send(0)], commits=False),
        commit(send(0)),
        *(Row([send(version)], commits=False) for version in (0, 1)),
        commit(),
    ]
    server = run(o, *rows)
    first = 3.0 * 0.2 * 0.5
    second = first + 3.0 * 0.2 * (0.5 * 0.5 + p(2 * first)) / 2.0
    np.testing.assert_allclose(firsts(server), [0.0, first, second])
    assert [job.staleness for row in rows for job in row.jobs] == [0, 0, 1, 0]


# Limits of methods, on rows of `events_twin`


def sent(
    found: events.Run, o: dict[str, Any], gradient: Callable[[Job], Any], K: int = 3
) -> tuple[twin.Server, list[Job]]:
    """Plays a method whose clients send a function of what they read."""

    def work(_: twin.Server, jobs: list[Job]) -> None:
        for job in jobs:
            job.message = np.asarray(gradient(job), float)

    stages = twin.STAGES | {"local_work": ("arrival", lambda **_: work)}
    rows = [commit(*(Job(*s) for s in each.entered)) for each in found.commits]
    server = twin.Server(ONE, np.array([5.0]), K, *twin.rates_of(o))
    twin.play(server, twin.chain_of(twin.opened(o), stages), rows)
    return server, [job for row in rows for job in row.jobs]


def test_a_cache_with_a_buffer_of_one_is_no_table() -> None:
    """CA2FL steps along h + (D - h_i), IA2SGD along h + (D - h_i) / n.

    Gradients are b_i but for one job of client 0, whose is b_0 + e. While none changes
    both move by the mean of b. That job moves IA2SGD by e / n more, and so does each
    commit until the client's next one; CA2FL by e, e / n, and at its next one by
    -(1 - 1 / n) e. Source: methods.md, section 6, which says that they are one.
    """
    b, e, n, tau = np.array([1.0, 4.0, -2.0]), 6.0, 3, (1.0, 1.3, 1.7)
    found = events.asynchronous(events.World(n, lambda i, _: tau[i], 20))

    def gradient(job: Job) -> list[float]:
        return [b[job.client] + e * (job.client == 0 and job.number == 5)]

    moves = []
    for kind in ("ia2sgd", "ca2fl"):
        server, jobs = sent(found, {"kind": kind, "step_size": 1.0}, gradient)
        moves.append(-np.diff(firsts(server)))
    names = [(job.client, job.number) for job in jobs]
    since, until = names.index((0, 5)), names.index((0, 6))
    everyone = next(i for i in range(20) if len({c for c, _ in names[: i + 1]}) == n)
    for i in range(everyone + 1, 20):
        table = b.mean() + e / n * (since <= i < until)
        jump = (i == since) - (i == until)
        assert moves[0][i] == pytest.approx(table)
        assert moves[1][i] == pytest.approx(table + (1 - 1 / n) * e * jump)
    assert everyone < 5


@pytest.mark.parametrize("q", [1.0, 1e60])
def test_the_limits_of_throttle(q: float) -> None:
    """A huge base makes a round one synchronous step; with 1 nothing is discounted."""
    centre, tau = (0.0, 3.0, -1.0), (1.0, 2.7, 3.1)
    found = events.restarting(events.World(3, lambda i, _: tau[i], 18))
    o = {"kind": "sgd", "step_size": 0.3, "weight": {"kind": "repeats", "base": q}}
    server, jobs = sent(found, o, lambda job: job.read - centre[job.client])
    models = firsts(server)
    if q == 1:
        for job, move in zip(jobs, np.diff(models), strict=True):
            gradient = models[job.version] - centre[job.client]
            assert move == pytest.approx(-0.1 * gradient)
        return
    x, ends = 5.0, [i for i, each in enumerate(found.commits, 1) if each.time_s > 3]
    ends = [i for i in ends if jobs[i - 1].client == 2]
    assert len(ends) > 2
    for i in ends:
        x -= 0.3 * np.mean([x - c for c in centre])
        assert models[i] == pytest.approx(x)


def test_arrivals_one_by_one_are_one_outer_step_of_nesterov() -> None:
    """A period of all clients, each of which has read the same model; or of grace."""
    centre = (0.0, 3.0, -1.0)
    world = events.World(3, lambda i, j: 1.0 if j == 0 else 100.0, 3)
    delayed = {"kind": "delayed_nesterov", "decay": 0.8, "spread": 0.0}
    g = np.mean([5.0 - c for c in centre])
    for found, period in ((events.asynchronous(world), 3), (events.rounds(world), 1)):
        o = {"kind": "sgd", "step_size": 0.3, "optimizer": delayed | {"period": period}}
        server, _ = sent(found, o, lambda job: job.read - centre[job.client])
        wanted = 5.0 - 0.3 * (g + 0.8 * g)  # torch's SGD with `nesterov`
        assert firsts(server)[3 if period == 3 else 1] == pytest.approx(wanted)
