"""The twin against hand-computed cases.

Most use one sample with the feature 1 (and the bias's 1) under the sigmoid: label 1 at
weights [w, b] has the gradient -p (1, 1), p = 1 / (1 + e^{w + b}), which is 1/2 at
zero. Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding
gives about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7. Two ways to
the same float64 model agree to 1e-12.
"""

import math

import numpy as np
import numpy.typing as npt
import pytest

from tests.reference import federated_twin as twin
from tests.reference.federated_twin import (
    Compensation,
    Contribution,
    Mechanism,
    Optimizer,
    Options,
    Problem,
    Row,
    Weight,
)

LN2 = math.log(2.0)
EVERY_LOSS = pytest.mark.parametrize(
    ("loss", "num_outputs"),
    [("softmax", 3), ("sigmoid", 1), ("hinge", 3), ("hinge", 1)],
)
ONE = Problem(np.array([[1.0, 1.0]]), np.array([1]), "sigmoid")
"""The sample of the module's docstring; 0 is its id."""
ZERO = np.zeros((1, 2))
FIRST = np.array([0])


def p(score: float) -> float:
    """1 / (1 + e^score)."""
    return 1.0 / (1.0 + math.exp(score))


def assert_close(got: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def problem(loss: str, num_outputs: int, **changes) -> Problem:
    generator = np.random.default_rng(1)
    features = np.hstack([generator.normal(size=(12, 3)), np.ones((12, 1))])
    labels = generator.integers(max(2, num_outputs), size=12)
    return Problem(features, labels, loss, l2=0.05)._replace(**changes)


def start(num_outputs: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(num_outputs, 4))


def send(read: int, steps: int = 1, noise: np.ndarray | None = None) -> Contribution:
    """A contribution of the sample `ONE`."""
    return Contribution(0, read, [FIRST] * steps, noise)


def commit(*contributions: Contribution) -> Row:
    return Row("commit", contributions)


class TestLosses:
    @EVERY_LOSS
    def test_gradient_is_that_of_the_loss_with_regulariser(self, loss, num_outputs):
        data, w = problem(loss, num_outputs), start(num_outputs)
        batch = np.array([0, 3, 3, 7, 11])

        def objective(w: np.ndarray) -> float:
            penalty = data.l2 / 2.0 * float((w[:, :-1] ** 2).sum())
            return twin.batch_loss(data, w, batch) + penalty

        gradient, clipped = twin.mean_gradient(data, w, batch)
        assert clipped == 0.0
        for entry in np.ndindex(w.shape):
            step = np.zeros_like(w)
            step[entry] = 1e-6
            slope = (objective(w + step) - objective(w - step)) / 2e-6
            np.testing.assert_allclose(gradient[entry], slope, atol=1e-7)

    def test_values_by_hand(self):
        x, w = np.array([[1.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 0.5], [-1.0, -1.0]])
        softmax = math.log(1 + math.exp(-1) + math.exp(-4))  # scores 2, 1, -2
        values = {"softmax": softmax, "hinge": 2.0}
        for loss, value in values.items():
            data = Problem(x, np.array([0]), loss)
            assert twin.sample_loss(data, w, 0) == pytest.approx(value, rel=1e-14)
        for label, hinge in ((1, 0.75), (0, 1.25)):  # score 0.25
            w = np.array([[0.0, 0.25]])
            data = Problem(x, np.array([label]), "hinge")
            assert twin.sample_loss(data, w, 0) == hinge
            sign = 2.0 * label - 1.0
            assert (twin.sample_gradient(data, w, 0) == -sign).all()
            value = twin.sample_loss(data._replace(loss="sigmoid"), w, 0)
            assert value == pytest.approx(math.log1p(math.exp(-sign * 0.25)))

    def test_subgradient_is_zero_at_the_kink(self):
        data = ONE._replace(loss="hinge")
        assert not twin.sample_gradient(data, np.array([[0.5, 0.5]]), 0).any()
        three = np.array([[0.0, -1.0], [0.0, 1.0], [0.0, -1.0]])
        assert not twin.sample_gradient(data, three, 0).any()

    @pytest.mark.parametrize("score", [-1000.0, 1000.0])
    def test_sigmoid_does_not_overflow(self, score):
        w = np.array([[0.0, score]])
        slope = twin.sample_gradient(ONE, w, 0)[0, 1]
        assert slope == (-1.0 if score < 0 else 0.0)
        assert twin.sample_loss(ONE, w, 0) == max(0.0, -score)

    def test_bias_is_not_penalised(self):
        data = ONE._replace(l2=0.1)
        w = np.array([[3.0, 4.0]])
        assert_close(twin.penalty_gradient(data, w), [[0.3, 0.0]])


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "expected"),
        [
            (Weight("constant"), [1, 1, 1, 1]),
            (Weight("polynomial", exponent=0.5), [1, 2**-0.5, 6**-0.5, 10**-0.5]),
            (Weight("polynomial", exponent=2.0), [1, 1 / 4, 1 / 36, 1 / 100]),
            (Weight("hinge", slope=10.0, late=4.0), [1, 1, 1 / 11, 1 / 51]),
            (Weight("hinge", slope=2.0, late=0.5), [1, 1 / 2, 1 / 10, 1 / 18]),
            (Weight("inverse"), [1, 1, 1 / 5, 1 / 9]),
            # 4 L step = 0.4: 1 / (0.4 s).
            (Weight("delay_adaptive", smoothness=0.5), [1, 1, 1 / 2, 1 / 3.6]),
            (
                Weight("delay_adaptive", smoothness=0.5, concurrency=5),
                [1, 1, 1, 1 / 3.6],
            ),
        ],
    )
    def test_at_0_1_5_9(self, weight, expected):
        got = [twin.staleness_weight(weight, s, 0.2) for s in (0, 1, 5, 9)]
        assert_close(got, expected)

    def test_delay_adaptive_without_a_step(self):
        weight = Weight("delay_adaptive", smoothness=1.0)
        assert twin.staleness_weight(weight, 5, 0.0) == 1.0


class TestOptimizers:
    """Two directions, 1 and then -2."""

    def second(self, configuration: Optimizer) -> tuple[float, float]:
        optimize = twin.ServerOptimizer(configuration, (1,))
        first = optimize(np.array([1.0]))[0]
        return first, optimize(np.array([-2.0]))[0]

    def test_momentum(self):
        assert self.second(Optimizer("momentum", decay=0.5)) == (1.0, -1.5)

    def test_adam(self):
        got = self.second(Optimizer("adam", 0.5, 0.75, 0.1))
        # Moments 0.5, 0.25, then 0.25 - 1 = -0.75 and 0.1875 + 1 = 1.1875.
        expected = 1 / 1.1, -0.75 / 0.75 / (math.sqrt(1.1875 / 0.4375) + 0.1)
        assert_close(got, expected)

    def test_yogi(self):
        got = self.second(Optimizer("yogi", 0.5, 0.75, 0.1, yogi_start=0.2))
        # Second moment: 0.2 < 1 adds 0.25; 0.45 < 4 adds 1.
        first = 0.5 * 0.2 + 0.5
        one = first / 0.5 / (math.sqrt(0.45 / 0.25) + 0.1)
        two = (0.5 * first - 1.0) / 0.75 / (math.sqrt(1.45 / 0.4375) + 0.1)
        assert_close(got, (one, two))

    def test_yogi_shrinks_its_second_moment(self):
        optimize = twin.ServerOptimizer(
            Optimizer("yogi", 0.5, 0.75, 0.1, yogi_start=4.0), (1,)
        )
        optimize(np.array([1.0]))
        assert optimize.second[0] == 3.75

    def test_adagrad_and_rmsprop(self):
        def over(second: float) -> float:
            return math.sqrt(second + 0.1)

        adagrad = Optimizer("adagrad", small=0.1)
        expected = 1 / over(1.0), -2 / over(5.0)
        assert_close(self.second(adagrad), expected)
        rmsprop = Optimizer("rmsprop", 0.5, 0.75, 0.1)
        expected = 1 / over(0.25), -2 / over(0.1875 + 1.0)
        assert_close(self.second(rmsprop), expected)


class TestClient:
    def test_local_steps(self):
        read = np.array([[0.2, 0.1]])
        total, loss, _ = twin.local_total(ONE, read, [FIRST] * 3, 0.5)
        # Both weights move by half of p, so that the score moves by p.
        scores = [0.3]
        for _ in range(2):
            scores.append(scores[-1] + p(scores[-1]))
        sent = -sum(p(z) for z in scores)
        assert_close(total, [[sent, sent]])
        mean = sum(math.log1p(math.exp(-z)) for z in scores) / 3
        assert loss == pytest.approx(mean, rel=1e-12)

    def test_proximal_pulls_back(self):
        total, _, _ = twin.local_total(ONE, ZERO, [FIRST] * 2, 0.5, proximal=0.4)
        # After a step both weights are 1/4: p(1/2), pulled by 0.4 / 4.
        assert_close(total, np.full((1, 2), -0.5 - p(0.5) + 0.1))

    def test_sample_clip_and_its_noise(self):
        # Gradients -(3, 1) / 2 and +(0, 1) / 2; norms sqrt(2.5) and 1 / 2.
        features = np.array([[3.0, 1.0], [0.0, 1.0]])
        data = Problem(features, np.array([1, 0]), "sigmoid")
        noise = np.array([[1.0, -2.0]])
        one = Contribution(0, 0, [np.array([0, 1])], noise)
        mechanism = Mechanism(1.0, "sample", 0.25)
        sent, loss, share = twin.send(data, ZERO, one, 0.1, 0.0, mechanism)
        clipped = np.array([[-3.0, -1.0]]) / math.sqrt(10.0)
        mean = (clipped + np.array([[0.0, 0.5]])) / 2.0
        # Sensitivity 2 * 1 / 2.
        assert_close(sent, mean + 0.25 * noise)
        assert (share, loss) == (0.5, pytest.approx(LN2))

    def test_regulariser_is_clipped_with_each_sample(self):
        data = ONE._replace(l2=10.0)
        w = np.array([[1.0, -1.0]])  # score 0
        mechanism = Mechanism(0.5, "sample")
        sent, _, share = twin.send(data, w, send(0), 0.1, 0.0, mechanism)
        exact = np.array([[9.5, -0.5]])
        expected = 0.5 * exact / np.linalg.norm(exact)
        assert_close(sent, expected)
        assert share == 1.0

    def test_contribution_clip_and_its_noise(self):
        noise = np.array([[1.0, -2.0]])
        mechanism = Mechanism(0.5, "contribution", 0.25)
        one = send(0, steps=3, noise=noise)
        sent, _, share = twin.send(ONE, ZERO, one, 0.1, 0.0, mechanism)
        clipped = np.full((1, 2), -0.5 / math.sqrt(2.0))
        assert_close(sent, clipped + 0.25 * 2 * 0.5 * noise)
        assert share == 1.0
        loose = mechanism._replace(clip_bound=1e9)
        quiet = one._replace(noise=np.zeros((1, 2)))
        sent, _, share = twin.send(ONE, ZERO, quiet, 0.1, 0.0, loose)
        total, _, _ = twin.local_total(ONE, ZERO, [FIRST] * 3, 0.1)
        assert_close(sent, total)
        assert share == 0.0

    def test_nothing_to_clip(self):
        clipped, changed = twin.clip(np.zeros((1, 2)), 1.0)
        assert not clipped.any()
        assert not changed


class TestSgd:
    def test_old_gradients_to_the_new_model(self):
        program = [commit(send(0)), commit(send(0)), commit(send(1))]
        options = Options(lambda k: 1.0 / (k + 1))
        versions, rows = twin.run("sgd", ONE, program, ZERO, options)
        models = [0.0, 0.5, 0.75, 0.75 + p(1.0) / 3]
        assert_close([w[0, 0] for w in versions], models)
        assert [row.stalenesses for row in rows] == [(0,), (1,), (1,)]
        assert [row.step_size for row in rows] == [1.0, 0.5, 1 / 3]
        assert rows[1].loss == pytest.approx(LN2)
        assert rows[2].loss == pytest.approx(math.log1p(math.exp(-1.0)))
        assert math.isnan(rows[0].clipped)

    def test_mean_over_contributions_and_not_over_weights(self):
        program = [commit(send(0)), commit(send(0), send(1))]
        options = Options(1.0, weight=Weight("polynomial", exponent=1.0))
        versions, rows = twin.run("sgd", ONE, program, ZERO, options)
        # At version 1 both weights are 1 / 2.
        moved = (0.5 * 0.5 + p(1.0)) / 2.0
        assert_close(versions[2], versions[1] + moved)
        assert rows[1].weights == (0.5, 1.0)
        losses = LN2, math.log1p(math.exp(-1.0))
        assert rows[1].loss == pytest.approx(sum(losses) / 2)

    def test_local_step_size(self):
        program = [commit(send(0, steps=2))]
        versions, _ = twin.run("sgd", ONE, program, ZERO, Options(2.0, 0.5))
        moved = 2.0 * (0.5 + p(0.5))
        assert_close(versions[1], np.full((1, 2), moved))
        # Without it the server makes of one client what this client has.
        versions, _ = twin.run("sgd", ONE, program, ZERO, Options(0.5))
        moved = 0.5 * (0.5 + p(0.5))
        assert_close(versions[1], np.full((1, 2), moved))

    @pytest.mark.parametrize("adaptive", [False, True])
    def test_compensation(self, adaptive):
        program = [commit(send(0)), commit(send(0))]
        compensation = Compensation(0.3, adaptive, decay=0.75)
        options = Options(1.0, compensation=compensation)
        versions, _ = twin.run("sgd", ONE, program, ZERO, options)
        # g = -1/2 twice; MeanSquare 1/16, then 3/64 + 1/16 = 7/64; now - read = 1/2.
        strength = 0.3 / math.sqrt(7 / 64 + 1e-7) if adaptive else 0.3
        compensated = -0.5 + strength * 0.25 * 0.5
        assert_close(versions[1], [[0.5, 0.5]])
        assert_close(versions[2], versions[1] - compensated)

    def test_contributions_enter_the_mean_square_in_their_order(self):
        compensate = twin.Compensator(Compensation(1.0, True, decay=0.5))
        now, read = np.array([1.0]), np.array([0.0])
        for g, mean_square in ((2.0, 2.0), (4.0, 9.0)):
            expected = g + g * g / math.sqrt(mean_square + 1e-7)
            assert_close(compensate(np.array([g]), now, read), [expected])

    def test_optimizer_takes_the_mean(self):
        program = [commit(send(0), send(0)), commit(send(0))]
        options = Options(1.0, optimizer=Optimizer("momentum", decay=0.5))
        versions, _ = twin.run("sgd", ONE, program, ZERO, options)
        # Directions -1/2 and -1/4 - 1/2.
        models = [0.0, 0.5, 1.25]
        assert_close([w[0, 0] for w in versions], models)

    def test_weight_of_noise_too(self):
        """The noise is added before the weight."""
        noise = np.array([[1.0, 0.0]])
        program = [commit(send(0, noise=0 * noise)), commit(send(0, noise=noise))]
        options = Options(
            1.0, weight=Weight("inverse"), mechanism=Mechanism(9.0, "sample", 0.5)
        )
        program.append(commit(send(0, noise=noise)))
        versions, rows = twin.run("sgd", ONE, program, ZERO, options)
        assert rows[2].weights == (0.5,)
        sent = np.array([[-0.5 + 9.0, -0.5]])
        assert_close(versions[3], versions[2] - 0.5 * sent)
        assert rows[2].clipped == 0.0


class TestFedAsync:
    def test_mixes_the_model_of_the_client(self):
        program = [commit(send(0, steps=2)), commit(send(0))]
        options = Options(
            0.5,
            mixing=0.8,
            proximal=0.4,
            weight=Weight("polynomial", exponent=1.0),
        )
        versions, rows = twin.run("fed_async", ONE, program, ZERO, options)
        first = 0.8 * 0.5 * (0.5 + p(0.5) - 0.1)
        second = 0.6 * first + 0.4 * 0.25
        models = [0.0, first, second]
        assert_close([w[0, 0] for w in versions], models)
        assert [row.weights for row in rows] == [(1.0,), (0.5,)]

    def test_default_weight(self):
        program = [commit(send(0)), commit(send(0))]
        _, rows = twin.run("fed_async", ONE, program, ZERO, Options(0.5))
        assert rows[1].weights == (2**-0.5,)

    def test_noise_is_on_the_gradients(self):
        noise = np.array([[1.0, 0.0]])
        mechanism = Mechanism(9.0, "contribution", 0.5)
        options = Options(0.1, mixing=0.5, mechanism=mechanism)
        program = [commit(send(0, noise=noise))]
        versions, _ = twin.run("fed_async", ONE, program, ZERO, options)
        expected = 0.5 * 0.1 * np.array([[0.5 - 9.0, 0.5]])
        assert_close(versions[1], expected)


class TestFedBuff:
    def test_buffer_by_hand(self):
        program = [
            Row("contribute", [send(0)]),
            commit(send(0)),
            Row("contribute", [send(0)]),
            Row("contribute", [send(1)]),
            commit(),
        ]
        options = Options(
            0.2, server_step_size=3.0, weight=Weight("polynomial", exponent=1.0)
        )
        versions, rows = twin.run("fed_buff", ONE, program, ZERO, options)
        first = 3.0 * 0.2 * 0.5
        second = first + 3.0 * 0.2 * (0.5 * 0.5 + p(2 * first)) / 2.0
        models = [0.0, first, second]
        assert_close([w[0, 0] for w in versions], models)
        assert [row.stalenesses for row in rows] == [(0,), (0,), (1,), (0,), ()]
        assert rows[2].weights == (0.5,)
        assert rows[4].kind == "commit"
        assert math.isnan(rows[4].loss)
        assert math.isnan(rows[4].clipped)

    def test_step_size_is_that_of_the_arrival(self):
        program = [commit(send(0)), Row("contribute", [send(0)]), commit(send(0))]
        options = Options(
            lambda k: 0.1 * (k + 1),
            server_step_size=lambda k: 1.0 + k,
            weight=Weight("constant"),
        )
        versions, rows = twin.run("fed_buff", ONE, program, ZERO, options)
        models = [0.0, 0.1 * 0.5, 0.1 * 0.5 + 2.0 * 0.2 * 0.5]
        assert_close([w[0, 0] for w in versions], models)
        assert [row.step_size for row in rows] == [0.1, 0.2, 0.2]

    def test_optimizer_takes_the_mean_of_the_buffer(self):
        program = [Row("contribute", [send(0)]), commit(send(0)), commit(send(0))]
        options = Options(
            0.2,
            server_step_size=2.0,
            weight=Weight("constant"),
            optimizer=Optimizer("momentum", decay=0.5),
        )
        versions, _ = twin.run("fed_buff", ONE, program, ZERO, options)
        models = [0.0, 0.2, 0.2 + 2.0 * (0.05 + 0.1)]
        assert_close([w[0, 0] for w in versions], models)
