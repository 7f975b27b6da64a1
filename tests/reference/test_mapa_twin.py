"""The twin against hand-computed cases and the printed numbers of its specification.

Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding
gives about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7. Two ways to
the same float64 model, sums of a few dozen terms of order 1, agree to 1e-12. Printed
numbers hold to half a unit of their last digit. Sampled means hold to 5 standard
errors of the sample; seeds are fixed.
"""

import math

import numpy as np
import pytest

from tests.reference import mapa_twin as twin
from tests.reference.mapa_twin import Constants, Options, Problem, Row

NUM_SAMPLES = 20
NUM_FEATURES = 4
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
OPTIONS = Options()
EVERY_LOSS = pytest.mark.parametrize("loss", twin.LOSSES)
PRIVATE = pytest.mark.parametrize("algorithm", ["audp", "mapa"])
LN2 = math.log(2.0)
DIMENSIONS = (1, 2, 10, 256, 784)


def num_outputs_of(loss: str) -> int:
    return 1 if loss == "logistic" else 3


def problem(loss: str, **changes) -> Problem:
    generator = np.random.default_rng(1)
    made = Problem(
        features=generator.normal(size=(NUM_SAMPLES, NUM_FEATURES)),
        labels=generator.integers(max(2, num_outputs_of(loss)), size=NUM_SAMPLES),
        loss=loss,
        l2=0.05,
    )
    return made._replace(**changes)


def start(loss: str) -> np.ndarray:
    shape = (NUM_FEATURES, num_outputs_of(loss))
    return np.random.default_rng(2).normal(size=shape)


def cyclic_rows(
    loss: str, num_clients: int, num_commits: int, batch_size: int, noise: float | None
) -> list[Row]:
    """Round-robin with random batches; noise of this standard deviation."""
    generator = np.random.default_rng(3)
    shape = (NUM_FEATURES, num_outputs_of(loss))
    reads = twin.cyclic_reads(num_clients, num_commits, num_clients - 1)
    return [
        Row(
            client,
            read,
            generator.integers(NUM_SAMPLES, size=batch_size),
            None if noise is None else noise * generator.normal(size=shape),
        )
        for client, read in reads
    ]


def printed(value: float, text: str) -> bool:
    """Whether `value` rounds to the printed `text`."""
    mantissa = text.partition("e")[0]
    digits = len(mantissa.partition(".")[2])
    exponent = int(text.partition("e")[2] or 0)
    return abs(value - float(text)) <= 0.5001 * 10.0 ** (exponent - digits)


def within_errors(draws: np.ndarray, expected: float) -> bool:
    return abs(draws.mean() - expected) <= 5.0 * draws.std() / math.sqrt(len(draws))


class TestLosses:
    @EVERY_LOSS
    @pytest.mark.parametrize("bias", [False, True])
    def test_gradient_is_that_of_the_objective(self, loss, bias):
        mask = np.arange(NUM_FEATURES) < NUM_FEATURES - 1 if bias else None
        data, w = problem(loss, penalised=mask), start(loss)
        batch = np.array([0, 3, 3, 7, 11])
        gradient = twin.mean_gradient(data, w, batch)
        for entry in np.ndindex(w.shape):
            step = np.zeros_like(w)
            step[entry] = 1e-6
            up = twin.objective(data, w + step, batch)
            down = twin.objective(data, w - step, batch)
            np.testing.assert_allclose(gradient[entry], (up - down) / 2e-6, atol=1e-7)

    def test_values_by_hand(self):
        x, w = np.array([[2.0]]), np.array([[1.0, 0.5, -1.0]])  # scores 2, 1, -2
        softmax = math.log(1 + math.exp(-1) + math.exp(-4))
        values = {"ovr_hinge": 2.0, "crammer_singer": 0.0, "softmax": softmax}
        for loss, value in values.items():
            data = Problem(x, np.array([0]), loss, l2=0.0)
            assert twin.sample_loss(data, w, 0) == pytest.approx(value, rel=1e-14)
        data = Problem(x, np.array([2]), "crammer_singer", l2=0.0)
        assert twin.sample_loss(data, w, 0) == 5.0
        np.testing.assert_array_equal(twin.sample_gradient(data, w, 0), [[2, 0, -2]])

    def test_regulariser_is_half_the_square(self):
        data = Problem(np.zeros((1, 2)), np.array([1]), "logistic", l2=1e-4)
        w = np.array([[3.0], [4.0]])
        value = twin.objective(data, w, np.array([0]))
        assert value == pytest.approx(LN2 + 1e-4 / 2 * 25, rel=1e-14)

    def test_subgradient_is_zero_at_the_kink(self):
        x = np.array([[1.0]])
        data = Problem(x, np.array([0]), "ovr_hinge", l2=0.0)
        assert not twin.sample_gradient(data, np.array([[1.0, -1.0]]), 0).any()
        data = data._replace(loss="crammer_singer")
        assert not twin.sample_gradient(data, np.array([[1.0, 0.0]]), 0).any()

    @pytest.mark.parametrize("score", [-1000.0, 1000.0])
    def test_logistic_does_not_overflow(self, score):
        data = Problem(np.array([[1.0]]), np.array([1]), "logistic")
        slope = twin.sample_gradient(data, np.array([[score]]), 0)[0, 0]
        assert slope == (-1.0 if score < 0 else 0.0)

    def test_ratio_to_the_bias_recovers_a_sample(self):
        """Fig. 4: x = dF/dw / dF/dbias, for one sample."""
        data = problem("logistic", l2=0.0)
        data.features[:, -1] = 1.0
        gradient = twin.mean_gradient(data, start("logistic"), np.array([5]))[:, 0]
        np.testing.assert_allclose(gradient / gradient[-1], data.features[5], **CLOSE)


class TestClipping:
    def test_by_hand(self):
        everything = np.ones((2, 1), dtype=bool)
        gradient = np.array([[3.0], [4.0]])
        clipped, flag = twin.clip(gradient, 2.5, everything)
        np.testing.assert_allclose(clipped, [[1.5], [2.0]], **CLOSE)
        assert flag
        clipped, flag = twin.clip(gradient, 5.0, everything)
        np.testing.assert_array_equal(clipped, gradient)
        assert not flag

    def test_only_the_scope_counts_and_shrinks(self):
        gradient = np.array([[3.0], [4.0], [100.0]])
        scope = np.array([[True], [True], [False]])
        clipped, _ = twin.clip(gradient, 2.5, scope)
        np.testing.assert_allclose(clipped, [[1.5], [2.0], [100.0]], **CLOSE)

    @pytest.mark.parametrize("mode", ["batch", "sample"])
    def test_only_clipped_samples_keep_the_sensitivity(self, mode):
        """M-03: two batch means clipped at G differ by up to 2 G = b Delta S."""
        data = Problem(np.array([[1.0], [-10.0], [0.1]]), np.ones(3), "logistic", 0.0)
        w, batch_size, bound = np.zeros((1, 1)), 2, 0.5
        options = OPTIONS._replace(clip_mode=mode)
        one, other = (
            twin.clipped_gradient(data, w, np.array(ids), bound, options)[0]
            for ids in ([2, 0], [2, 1])
        )
        sensitivity = twin.theorem_1_sensitivity(bound, batch_size)
        kept = np.linalg.norm(one - other) <= sensitivity
        assert kept == (mode == "sample")

    def test_counts_the_clipped_samples(self):
        data = Problem(np.array([[1.0], [4.0], [8.0]]), np.ones(3), "logistic", 0.0)
        ids, w = np.array([0, 1, 2, 2]), np.zeros((1, 1))  # norms 0.5, 2, 4, 4
        options = OPTIONS._replace(clip_mode="sample")
        gradient, num = twin.clipped_gradient(data, w, ids, 1.0, options)
        assert num == 3
        np.testing.assert_allclose(gradient, [[-(0.5 + 3.0) / 4]], **CLOSE)

    @pytest.mark.parametrize("mode", ["batch", "sample"])
    def test_regulariser_inside_or_outside(self, mode):
        data = Problem(np.array([[1.0]]), np.array([1]), "logistic", l2=1.0)
        w, ids = np.array([[-3.0]]), np.array([0])
        inside = OPTIONS._replace(clip_mode=mode)
        outside = inside._replace(clip_regulariser=False)
        slope = 1 / (1 + math.exp(-3))
        got = twin.clipped_gradient(data, w, ids, 0.5, inside)[0]
        np.testing.assert_allclose(got, [[-0.5]], **CLOSE)  # -3 - slope, clipped
        got = twin.clipped_gradient(data, w, ids, 0.5, outside)[0]
        np.testing.assert_allclose(got, [[-3 - 0.5]], **CLOSE)
        assert slope > 0.5


class TestNoise:
    @pytest.mark.parametrize(
        ("law", "moments"),
        [
            ("gamma", (2, 6, 110, 65_792, 615_440)),
            ("radial_exp", (2, 2, 2, 2, 2)),
            ("iid_laplace", (2, 4, 20, 512, 1_568)),
        ],
    )
    def test_second_moments_of_section_3(self, law, moments):
        for size, moment in zip(DIMENSIONS, moments, strict=True):
            assert twin.second_moment(law, size, 1.0) == moment
            assert twin.second_moment(law, size, 3.0) == 9 * moment

    @pytest.mark.parametrize("size", DIMENSIONS)
    @pytest.mark.parametrize("law", twin.LAWS)
    def test_draws_have_the_moments(self, law, size):
        generator = np.random.default_rng(4)
        draws = [twin.unit_noise(law, size, generator) for _ in range(2000)]
        norms = np.array([np.linalg.norm(draw) for draw in draws])
        assert within_errors(norms**2, twin.second_moment(law, size, 1.0))
        # C as printed, to two or three digits; within_errors is wider than that.
        laplace = dict(zip(DIMENSIONS, (1.00, 1.62, 4.24, 22.6, 39.6), strict=True))
        means = {"gamma": size, "radial_exp": 1, "iid_laplace": laplace[size]}
        assert within_errors(norms, means[law])
        assert within_errors(np.array([draw[0] for draw in draws]), 0.0)

    @pytest.mark.parametrize(
        ("law", "size", "printed_range"),
        [
            ("gamma", 10, (0.0, 0.0)),
            ("radial_exp", 2, (0.345, 0.355)),
            ("radial_exp", 10, (0.755, 0.765)),
            ("radial_exp", 784, (0.99955, 0.99965)),
            ("iid_laplace", 2, (0.095, 0.1255)),
            ("iid_laplace", 784, (0.095, 0.1255)),
        ],
    )
    def test_privacy_of_section_3(self, law, size, printed_range):
        """delta(1) = E max(0, 1 - e / ratio) for a shift as long as Delta S."""
        generator = np.random.default_rng(5)
        shift = np.ones(size) / math.sqrt(size)
        ratios = np.array(
            [
                twin.log_density_ratio(
                    law, twin.unit_noise(law, size, generator), shift, 1.0
                )
                for _ in range(4000)
            ]
        )
        lost = np.maximum(0.0, 1.0 - np.exp(1.0 - ratios))
        slack = 5.0 * lost.std() / math.sqrt(len(lost))
        low, high = printed_range
        assert low - slack <= lost.mean() <= high + slack
        assert ratios.max() <= twin.guaranteed_epsilon(law, size, 1.0) + 1e-12

    def test_guarantees(self):
        for law in twin.LAWS:
            assert twin.guaranteed_epsilon(law, 1, 0.3) == 0.3
        assert twin.guaranteed_epsilon("gamma", 100, 0.3) == 0.3
        assert twin.guaranteed_epsilon("radial_exp", 100, 0.3) == math.inf
        assert twin.guaranteed_epsilon("iid_laplace", 100, 0.3) == 3.0

    def test_exponential_radius_is_unbounded_at_the_origin(self):
        """(d - 1) ln(far / near) + (far - near) / scale, by hand."""
        noise, shift = np.array([1e-3, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
        ratio = twin.log_density_ratio("radial_exp", noise, shift, 2.0)
        assert ratio == pytest.approx(2 * math.log(1001.0) + 0.5, rel=1e-12)


class TestFormulas:
    @pytest.mark.parametrize(
        ("delta", "text"), [(1e-3, "223.579"), (1e-4, "707.1"), (1e-2, "70.6")]
    )
    def test_initial_sensitivity(self, delta, text):
        c = Constants(delta=delta)
        sensitivity = twin.initial_sensitivity(c, OPTIONS)
        assert printed(sensitivity, text)
        assert twin.equation_12_holds(sensitivity * (1 + 1e-9), c)
        assert not twin.equation_12_holds(sensitivity * (1 - 1e-9), c)
        if delta == 1e-3:
            assert printed(twin.clip_bound_of(sensitivity, c.batch_size), "1341.5")

    def test_left_side_of_12_also_holds_where_the_probability_is_negative(self):
        """Why the twin asks for a probability: (1 - 100)^2 >= 1 - delta."""
        c = Constants(sigma=5.0, batch_size=1)
        assert (1 - 4 * c.sigma**2) ** 2 >= 1 - c.delta
        assert not twin.equation_12_holds(1.0, c)

    def test_given_clip_bound(self):
        """M-27: Delta S = 2 G / b; the bounds of Fig. 5 come back."""
        for bound in (0.2, 3.0, 10.0, 15.0, 100.0, 200.0):
            options = OPTIONS._replace(clip_bound=bound)
            sensitivity = twin.initial_sensitivity(Constants(), options)
            assert sensitivity == pytest.approx(bound / 6.0, rel=1e-15)
            back = twin.clip_bound_of(sensitivity, 12)
            assert back == pytest.approx(bound, rel=1e-15)

    def test_variance(self):
        c = Constants(sigma=6.0, batch_size=12, epsilons=(2.0, 0.5, 1.0))
        paper = OPTIONS._replace(law="gamma", variance_in_analysis="paper")
        # sigma^2 / b = 3; the smallest epsilon makes the scale 3 / 0.5 = 6.
        assert twin.gradient_variance(3.0, 10, c, paper) == 3 + 2 * 36
        for law, factor in (("gamma", 110), ("radial_exp", 2), ("iid_laplace", 20)):
            options = OPTIONS._replace(law=law)
            assert twin.gradient_variance(3.0, 10, c, options) == 3 + factor * 36

    def test_step_sizes_of_table_2(self):
        c = Constants(sigma=6.0, batch_size=9, smoothness=10.0, radius=2.0)
        # sigma / (R sqrt(b)) = 1, tau_max = 5, sqrt(t + 1) = 2, sqrt(Delta_b + 1) = 4.
        assert twin.csgd_step_size(3, c) == pytest.approx(1 / 12)
        assert twin.asgd_step_size(3, c) == pytest.approx(1 / 362)
        assert twin.audp_step_size(4, 15.0, c) == pytest.approx(1 / 68)
        assert twin.audp_step_size(4, 15.0, c, "eq11") == pytest.approx(1 / 378)
        assert twin.constant_step_size(2.5, c) == pytest.approx(1 / 300)

    def test_equation_11_meets_its_condition_and_10_does_not(self):
        """M-21, with the sign and the factor put right."""
        c = Constants()
        for t in (1, 10, 1000):
            assert twin.equation_11_condition(t, 1.0, c, "eq11") >= 0.0
        assert twin.equation_11_condition(1, 1.0, c, "eq10") < 0.0

    @pytest.mark.parametrize("sensitivity", [223.579, 3.0, 0.2])
    def test_identities_of_section_5(self, sensitivity):
        c = Constants()
        variance = twin.gradient_variance(sensitivity, 785, c, OPTIONS)
        P = twin.exact_divisor(sensitivity, variance, c)
        gamma = twin.constant_step_size(P, c)
        length = twin.exact_stage_length(P, variance, c)
        # Eq. (15) makes the two terms of (14) equal, so that they are the level.
        first = 2 * c.f_gap / (length * gamma)
        second = 2 * variance * c.smoothness * gamma
        level = twin.squared_gradient_level(P, variance, c)
        assert first == pytest.approx(second, rel=1e-12)
        assert first + second == pytest.approx(level, rel=1e-12)
        # Eq. (16) makes the new sensitivity theta times the old.
        new = 2 / c.batch_size * math.sqrt(level)
        assert new == pytest.approx(c.theta * sensitivity, rel=1e-12)

    def test_theorem_2_by_hand(self):
        c = Constants(smoothness=1.0, max_staleness=1, radius=1.0)
        # T = 16, Delta_b = 3, G = 1: 1 / 16, 1/2 * 4 ln 16 / 16, 5 * 2 / 8, 4 / 8.
        expected = 1 / 16 + math.log(16) / 8 + 1.25 + 0.5
        assert twin.theorem_2_bound(16, 3.0, 1.0, c) == pytest.approx(expected)
        by_parts = twin.theorem_2_bound(16, 3.0, 1.0, c, "by_parts")
        assert by_parts == pytest.approx(expected - 0.5 + 4 / 32)

    def test_theorem_4_by_hand(self):
        c = Constants(smoothness=1.0, f_gap=1.0)
        assert twin.theorem_4_bound(10, 0.05, 2.0, c) == pytest.approx(4.2)

    def test_composition_of_section_6(self):
        clients = [t % 5 for t in range(15_000)]
        total = twin.basic_composition(clients, (0.1,) * 5)
        assert total == pytest.approx(1500.0)
        assert printed(twin.advanced_composition(15_000, 0.1, 1e-5), "216.5")
        own = twin.parallel_composition(clients, (0.1, 0.1, 0.1, 0.1, 0.2))
        assert own == pytest.approx(600.0)


# s, Delta S, clip bound, Delta_b, P, gamma, T_s, iterations: section 6.
STAGES = (
    (1, "223.579", "1341.5", "9997574", "7.40746", "0.00112499", "0.00548", 1),
    (4, "27.95", "167.7", "1.563e5", "7.411", "0.001124", "0.351", 1),
    (6, "6.987", "41.92", "9838", "7.464", "0.001116", "5.65", 6),
    (8, "1.747", "10.48", "685.2", "8.318", "0.001002", "100.8", 101),
    (9, "0.8734", "5.24", "227.5", "11.05", "0.0007542", "535.5", 536),
    (10, "0.4367", "2.62", "113.1", "21.97", "0.0003792", "4260", 4261),
    (11, "0.2183", "1.31", "84.5", "65.7", "0.0001269", "50930", 50_930),
)


class TestStages:
    def test_table_of_section_6(self):
        stages = twin.stage_table(15_000, 785, Constants(f_gap=LN2), OPTIONS)
        assert [stage.number for stage in stages] == list(range(1, 12))
        for number, *texts, length in STAGES:
            stage = stages[number - 1]
            bound = twin.clip_bound_of(stage.sensitivity, 12)
            got = (stage.sensitivity, bound, stage.variance, stage.divisor)
            got += (stage.step_size, stage.exact_length)
            for value, text in zip(got, texts, strict=True):
                assert printed(value, text), (number, value, text)
            assert stage.length == length

    def test_regimes_of_section_6(self):
        c = Constants(f_gap=LN2)
        stages = twin.stage_table(10**9, 785, c, OPTIONS)
        noise_divisor = 16 / (6 * 144 * 0.25 * 0.01)
        assert stages[0].divisor == pytest.approx(noise_divisor, rel=1e-4)
        assert stages[1].exact_length / stages[0].exact_length == pytest.approx(4, 1e-3)
        late, later = stages[-2], stages[-1]
        assert later.divisor / late.divisor == pytest.approx(4, 0.02)
        assert later.exact_length / late.exact_length == pytest.approx(16, 0.05)

    def test_step_does_not_depend_on_staleness_until_clamped(self):
        """P (tau_max + 1) is free of tau_max in (16), so that 1 / K needs P = 1."""
        steps = [
            twin.make_stage(1, 200.0, 785, Constants(max_staleness=K), OPTIONS)
            for K in (5, 10, 100, 1000)
        ]
        assert steps[0].step_size == pytest.approx(steps[1].step_size, rel=1e-12)
        assert steps[2].divisor == steps[3].divisor == 1.0
        ratio = steps[2].step_size / steps[3].step_size
        assert ratio == pytest.approx(1001 / 101, rel=1e-12)

    @pytest.mark.parametrize("clamp", ["both", "step_only", "none"])
    def test_clamp(self, clamp):
        """M-06; an epsilon of 10 makes P = 16 / (6 * 144 * 0.25 * 100) and a bit."""
        c = Constants(epsilons=(10.0,))
        stage = twin.make_stage(1, 223.579, 785, c, OPTIONS._replace(clamp=clamp))
        exact = twin.exact_divisor(223.579, stage.variance, c)
        assert exact < 0.001
        assert stage.divisor == (exact if clamp == "none" else 1.0)
        of_length = 1.0 if clamp == "both" else exact
        length = twin.exact_stage_length(of_length, stage.variance, c)
        assert stage.exact_length == length
        assert stage.step_size == twin.constant_step_size(stage.divisor, c)

    def test_bound_rule_is_theta_unless_clamped_and_then_faster(self):
        """M-07."""
        bound = OPTIONS._replace(stage_rule="bound")
        c = Constants()
        stage = twin.make_stage(1, 10.0, 785, c, OPTIONS)
        assert twin.next_sensitivity(stage, c, bound) == pytest.approx(5.0, rel=1e-12)
        assert twin.next_sensitivity(stage, c, OPTIONS) == 5.0
        c = Constants(epsilons=(10.0,))
        stage = twin.make_stage(1, 223.579, 785, c, OPTIONS)
        assert twin.next_sensitivity(stage, c, bound) < 0.5 * 223.579

    def test_rounding(self):
        c, floor = Constants(f_gap=LN2), OPTIONS._replace(rounding="floor1")
        up = twin.stage_table(100, 785, c, OPTIONS)
        down = twin.stage_table(100, 785, c, floor)
        # Exact lengths 0.005, 0.02, 0.09, 0.35, 1.4, 5.65, 23.1, 100.8.
        assert [stage.length for stage in up] == [1, 1, 1, 1, 2, 6, 24, 101]
        assert [stage.length for stage in down] == [1, 1, 1, 1, 1, 5, 23, 100]

    def test_gamma_law_enters_the_analysis(self):
        options = OPTIONS._replace(law="gamma")
        c = Constants()
        stage = twin.make_stage(1, 1.0, 785, c, options)
        assert stage.variance == pytest.approx(75 + 785 * 786 * 100, rel=1e-15)
        paper = options._replace(variance_in_analysis="paper")
        assert twin.make_stage(1, 1.0, 785, c, paper).variance == pytest.approx(275.0)


class TestDelays:
    def test_round_robin(self):
        """Section 8: what was received at the previous turn; staleness K - 1."""
        reads = twin.cyclic_reads(3, 7, 2)
        assert [client for client, _ in reads] == [0, 1, 2, 0, 1, 2, 0]
        assert [read for _, read in reads] == [0, 0, 0, 1, 2, 3, 4]
        received = dict.fromkeys(range(3), 0)
        for commit, (client, read) in enumerate(reads):
            assert read == received[client]
            received[client] = commit + 1

    def test_extra_slot(self):
        reads = twin.cyclic_reads(3, 7, 3)
        assert [read for _, read in reads] == [0, 0, 0, 0, 1, 2, 3]

    def test_window(self):
        losses = [5.0, 4.0, 3.0, 2.0, 1.0, 0.5]
        assert twin.iterations_to_threshold(losses, 3.0) == 6
        assert twin.iterations_to_threshold(losses, 3.1) == 5
        assert twin.iterations_to_threshold(losses, 2.1) is None


class TestRunByHand:
    ONE = Problem(np.array([[1.0, 2.0]]), np.array([1]), "logistic", l2=0.0)
    FIRST = np.array([0])

    def test_audp(self):
        c = Constants(
            batch_size=1, sigma=1.0, smoothness=1.0, max_staleness=1, epsilons=(2.0,)
        )
        options = OPTIONS._replace(clip_bound=0.5)  # Delta S = 1, scale 1 / 2
        rows = [Row(0, 0, self.FIRST, np.array([[0.1], [-0.2]]))]
        trace = twin.run("audp", self.ONE, rows, np.zeros((2, 1)), c, options)
        gamma = 1 / (2 + math.sqrt(1 + 2 * 0.25 + 1))
        clipped = np.array([-0.5, -1.0]) * 0.5 / math.sqrt(1.25)
        expected = -gamma * (clipped + np.array([0.1, -0.2]))
        np.testing.assert_allclose(trace.versions[1][:, 0], expected, **CLOSE)
        commit = trace.commits[0]
        assert commit.step_size == pytest.approx(gamma, rel=1e-15)
        assert (commit.sensitivity, commit.noise_scale) == (1.0, 0.5)
        assert commit.num_clipped == 1
        assert commit.gradient_norm == pytest.approx(math.sqrt(1.25))
        assert commit.noise_norm == pytest.approx(math.sqrt(0.05))
        assert commit.loss == pytest.approx(LN2)
        assert commit.stage == twin.NO_STAGE

    def test_noise_in_units_of_its_scale(self):
        c = Constants(batch_size=1, max_staleness=1, epsilons=(2.0, 0.5))
        options = OPTIONS._replace(clip_bound=0.5, noise_unit="scale")
        unit = np.array([[3.0], [4.0]])
        rows = [Row(0, 0, self.FIRST, unit), Row(1, 0, self.FIRST, unit)]
        trace = twin.run("audp", self.ONE, rows, np.zeros((2, 1)), c, options)
        assert [commit.noise_norm for commit in trace.commits] == [2.5, 10.0]

    def test_asgd_takes_the_old_gradient_to_the_new_model(self):
        data = Problem(np.array([[1.0]]), np.array([1]), "logistic", l2=0.0)
        c = Constants(batch_size=1)
        options = OPTIONS._replace(step_size=lambda t: 1.0 / t)
        rows = [Row(k % 2, r, self.FIRST) for k, r in enumerate((0, 0, 1))]
        trace = twin.run("asgd", data, rows, np.zeros((1, 1)), c, options)
        third = 0.75 + 1 / 3 / (1 + math.exp(0.5))
        models = [w[0, 0] for w in trace.versions]
        np.testing.assert_allclose(models, [0.0, 0.5, 0.75, third], **CLOSE)
        assert [commit.staleness for commit in trace.commits] == [0, 1, 1]

    @pytest.mark.parametrize(
        ("reply", "halvings"),
        [("old", [0, 0, 0, 1, 2, 3, 4]), ("new", [0, 0, 1, 2, 3, 4, 4])],
    )
    def test_mapa_sensitivity_travels_with_the_model(self, reply, halvings):
        """M-18: stages last 1, 1, 1, 1, 2, 6 here; two clients in turn."""
        c = Constants(f_gap=LN2, batch_size=12, epsilons=(0.1, 0.4))
        options = OPTIONS._replace(reply=reply, noise_unit="scale")
        rows = cyclic_rows("logistic", 2, 7, 12, noise=1e-3)
        data, w = problem("logistic"), start("logistic")
        trace = twin.run("mapa", data, rows, w, c, options)
        first = twin.initial_sensitivity(c, options)
        commits = trace.commits
        assert [commit.stage for commit in commits] == [1, 2, 3, 4, 5, 5, 6]
        for t, (commit, halved) in enumerate(zip(commits, halvings, strict=True)):
            assert commit.sensitivity == first / 2 ** (commit.stage - 1)
            assert commit.client_sensitivity == first / 2**halved
            epsilon = (0.1, 0.4)[t % 2]
            assert commit.noise_scale == first / 2**halved / epsilon
            noise = np.linalg.norm(rows[t].noise)
            assert commit.noise_norm == pytest.approx(commit.noise_scale * noise)
        assert trace.stages == twin.stage_table(7, NUM_FEATURES, c, options)


class TestRelations:
    @PRIVATE
    def test_unnoised_coordinates_do_not_count(self, algorithm):
        """M-14: only the noised are clipped and enter d."""
        noised = np.zeros((NUM_FEATURES, 1), dtype=bool)
        noised[0] = True
        data, w = problem("logistic"), start("logistic")
        c = Constants(batch_size=4, epsilons=(0.5, 1.0, 2.0))
        options = OPTIONS._replace(
            noised=noised, law="gamma", clip_bound=1e-3, step_size=lambda _: 0.1
        )
        rows = cyclic_rows("logistic", 3, 1, 4, noise=0.2)
        rows = [row._replace(noise=row.noise * noised) for row in rows]
        trace = twin.run(algorithm, data, rows, w, c, options)
        gradient = twin.mean_gradient(data, w, rows[0].sample_ids)
        moved = (trace.versions[0] - trace.versions[1]) / 0.1
        np.testing.assert_allclose(moved[1:], gradient[1:], **CLOSE)
        clipped = math.copysign(1e-3, gradient[0, 0])
        np.testing.assert_allclose(moved[0], rows[0].noise[0] + clipped, **CLOSE)
        if algorithm == "mapa":
            sensitivity = trace.stages[0].sensitivity
            noise = 2.0 * (sensitivity / 0.5) ** 2  # d = 1
            assert trace.stages[0].variance == pytest.approx(900 / 4 + noise)
        every = options._replace(clip_scope="all")
        moved = np.subtract(*twin.run(algorithm, data, rows, w, c, every).versions)
        norm = np.linalg.norm(moved / 0.1 - rows[0].noise)
        assert norm == pytest.approx(1e-3, rel=1e-9)


class TestRefusals:
    def refuse(self, algorithm, match, row=None, **changes):
        data, w = problem("logistic"), start("logistic")
        c = Constants(batch_size=2, epsilons=(0.1,))
        row = row or Row(0, 0, np.array([0, 1]), np.zeros_like(w))
        options = OPTIONS._replace(**changes)
        with pytest.raises(ValueError, match=match):
            twin.run(algorithm, data, [row], w, c, options)

    def test_words(self):
        self.refuse("sgd", "algorithm must be")
        for name in twin.WORDS:
            self.refuse("mapa", f"{name} must be", **{name: "other"})
        data = problem("logistic")._replace(loss="square")
        with pytest.raises(ValueError, match="loss must be"):
            twin.run("csgd", data, [], start("logistic"), Constants())

    def test_rows(self):
        two, silent = np.array([0, 1]), np.zeros((NUM_FEATURES, 1))
        self.refuse("mapa", "read_version must be", Row(0, 1, two, silent))
        self.refuse("mapa", "sample_ids must be", Row(0, 0, two[:1], silent))
        self.refuse("mapa", "noise must be an array", Row(0, 0, two))
        self.refuse("mapa", "noise must be", Row(0, 0, two, silent[:2]))
        self.refuse("asgd", "noise must be None", Row(0, 0, two, silent))
        silent = np.zeros((NUM_FEATURES, 1), dtype=bool)
        self.refuse("audp", "zero where not", Row(0, 0, two, silent + 1), noised=silent)

    def test_csgd_has_no_delay(self):
        rows = [Row(0, 0, np.array([0])), Row(0, 0, np.array([0]))]
        data, w = problem("logistic"), start("logistic")
        with pytest.raises(ValueError, match="which has no delay"):
            twin.run("csgd", data, rows, w, Constants(batch_size=1))
