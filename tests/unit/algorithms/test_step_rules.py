import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.vafl.theorems import (
    BoundedNonconvexStep,
    BoundedStronglyConvexStep,
    StochasticNonconvexStep,
    StochasticStronglyConvexStep,
    geometric_refresh,
)
from stalesim.simulator.engine.step_rules import (
    ConstantStep,
    InverseRootStep,
    Schedule,
    StepSize,
    resolve,
)
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.constants import Constants

NONE = Constants()


@pytest.mark.parametrize("rule", [0.2, ConstantStep(value=0.2)])
def test_a_constant_is_the_same_for_ever(rule: StepSize) -> None:
    client, server = resolve(rule, NONE)
    assert client == server
    assert [client.at(k) for k in (0, 1, 10**9)] == [0.2, 0.2, 0.2]
    assert resolve(0.0, NONE)[0].at(0) == 0.0


def test_schedules_pass_through_jit() -> None:
    schedule = Schedule(2.0, 8.0, 1.0)
    steps = jax.jit(lambda s, k: s.at(k))(schedule, jnp.arange(4))
    np.testing.assert_allclose(steps, [2 / 8, 2 / 9, 2 / 10, 2 / 11], rtol=1e-6)
    assert schedule.at(2) == 0.2


def test_the_inverse_root_falls() -> None:
    client, server = resolve(InverseRootStep(value=0.6), Constants(num_clients=4))
    assert client == server
    found = [client.at(round_) for round_ in (0, 1, 3, 99)]
    assert found == pytest.approx([0.6, 0.6 / math.sqrt(2), 0.3, 0.06], rel=1e-14)
    expected = 0.6 / np.sqrt(np.arange(1, 21))
    np.testing.assert_allclose(client.at(np.arange(20)), expected, rtol=1e-14)


def test_with_a_horizon_the_inverse_root_is_constant() -> None:
    client, server = resolve(InverseRootStep(value=0.6, horizon=9), NONE)
    assert client == server
    found = [client.at(round_) for round_ in (0, 8, 500)]
    assert found == pytest.approx([0.2] * 3, rel=1e-14)


def test_the_inverse_root_may_know_the_number_of_parties() -> None:
    known = Constants(num_clients=16)
    falling, _ = resolve(InverseRootStep(value=0.6, by_parties=True), known)
    expected = 0.6 / np.sqrt(16 * np.arange(1, 21))
    np.testing.assert_allclose(falling.at(np.arange(20)), expected, rtol=1e-14)
    rule = InverseRootStep(value=0.6, horizon=9, by_parties=True)
    assert resolve(rule, known)[0].at(77) == pytest.approx(0.05, rel=1e-14)


@pytest.mark.parametrize("t", [1, 4])
def test_theorems_1_and_7(t: int) -> None:
    rule = BoundedNonconvexStep(
        smoothness=2.0, staleness_bound=9, horizon=10_000, c_eta=0.5, t=t
    )
    client, server = resolve(rule, NONE)
    assert server.at(77) == min(1 / (4 * 10 * 2), 0.5 / 100) == 0.005
    assert client.at(77) == 0.005 / t
    short = rule.replaced(horizon=100)
    assert resolve(short, NONE)[1].at(0) == 1 / 80


@pytest.mark.parametrize("t", [1, 2])
def test_theorems_3_and_9_take_the_largest_moment(t: int) -> None:
    rule = StochasticNonconvexStep(
        smoothness=0.5, delay_second_moments=(4.0, 81.0), horizon=1, t=t
    )
    client, server = resolve(rule, NONE)
    assert server.at(0) == 1 / (4 * 10 * 0.5)
    assert client.at(0) == server.at(0) / t


@pytest.mark.parametrize("t", [1, 2])
def test_theorem_2_by_its_proof_and_8(t: int) -> None:
    """Theorem 8 divides the offset by t."""
    rule = BoundedStronglyConvexStep(
        smoothness=3.0,
        strong_convexity=0.5,
        staleness_bound=5,
        activation=(0.6, 0.8, 0.4),
        t=t,
    )
    client, server = resolve(rule, NONE)
    assert client == server
    rate = 0.5 * 0.4
    offset = 4 * (4 * 6 * 3 + (2 if t == 1 else 1) * rate * 5) / (t * rate)
    assert client.offset == pytest.approx(offset, rel=1e-15)
    assert client.at(100) == pytest.approx(4 / (rate * (100 + offset)), rel=1e-15)
    if t == 1:  # the first step obeys the bound of the non-convex case
        assert client.at(0) < 1 / (4 * 6 * 3)


@pytest.mark.parametrize("t", [1, 3])
def test_theorems_4_and_10(t: int) -> None:
    refresh = (0.5, 0.2)
    moments = tuple((2 - r) / r**2 for r in refresh)
    assert moments == pytest.approx((6.0, 45.0))
    rule = StochasticStronglyConvexStep(
        smoothness=3.0,
        strong_convexity=0.5,
        activation=(0.7, 0.3),
        delay_second_moments=moments,
        t=t,
    )
    client, server = resolve(rule, NONE)
    assert client == server
    longest = 1 / (4 * (1 + math.sqrt(45)) * 3)
    # 1 - rho is the slowest client's refresh probability, 0.2
    nu = min(
        0.2 * 6 / (longest * 26),
        0.5 * 0.7 / 2,
        0.2 * 45 / (longest * 65),
        0.5 * 0.3 / 2,
    )
    assert client.scale == pytest.approx(2 / nu, rel=1e-14)
    assert client.offset == pytest.approx(1 / (longest * t * nu), rel=1e-14)
    assert client.power == 1


def test_theorem_4_when_the_delays_decide() -> None:
    rule = StochasticStronglyConvexStep(
        smoothness=1.0,
        strong_convexity=1e3,
        activation=(1.0,),
        delay_second_moments=(6,),
    )
    nu = 0.5 * 6 * 4 * (1 + math.sqrt(6)) / 26
    assert resolve(rule, NONE)[0].scale == pytest.approx(2 / nu, rel=1e-14)


def test_data_values_come_from_the_problem() -> None:
    rule = BoundedStronglyConvexStep(staleness_bound=5, activation=(0.2, 0.8))
    known = Constants(smoothness=3.0, strong_convexity=0.5)
    written = rule.replaced(smoothness=3.0, strong_convexity=0.5)
    assert resolve(rule, known) == resolve(written, NONE)
    # a number in the scenario wins over the data
    assert resolve(written, Constants(9.0, 9.0)) == resolve(written, NONE)


@pytest.mark.parametrize(
    ("rule", "constants", "message"),
    [
        (
            BoundedNonconvexStep(staleness_bound=1, horizon=1),
            NONE,
            r"step_size\.smoothness must be a number > 0.*got 'data'",
        ),
        (
            BoundedStronglyConvexStep(staleness_bound=1, activation=(1.0,)),
            Constants(1.0, 0.0),
            r"step_size\.strong_convexity must be.*computed: 0\.0",
        ),
        (
            BoundedStronglyConvexStep(staleness_bound=1, activation=(1.0, 1.2)),
            Constants(1.0, 1.0),
            "activation must be probabilities",
        ),
        (
            BoundedStronglyConvexStep(staleness_bound=1, activation=()),
            Constants(1.0, 1.0),
            "activation must be probabilities",
        ),
        (
            StochasticNonconvexStep(delay_second_moments=(0.5,), horizon=1),
            Constants(1.0, 1.0),
            "delay_second_moments must be >= 1",
        ),
        (
            StochasticStronglyConvexStep(
                delay_second_moments=(2.0,), activation=(0.5, 0.5)
            ),
            Constants(1.0, 1.0),
            "as many entries as activation",
        ),
    ],
)
def test_mistakes_are_named_in_one_line(
    rule: StepSize, constants: Constants, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        resolve(rule, constants)
    assert "\n" not in str(caught.value)


def test_refreshes_are_those_of_the_second_moment_of_delays() -> None:
    """(2 - r) / r^2 is the second moment of a geometric delay."""
    r = 0.03
    moment = math.fsum(s * s * r * (1 - r) ** (s - 1) for s in range(1, 2_000))
    assert moment == pytest.approx((2 - r) / r**2, rel=1e-12)
    assert geometric_refresh(moment) == pytest.approx(r, rel=1e-12)
    assert geometric_refresh(1.0) == 1.0
