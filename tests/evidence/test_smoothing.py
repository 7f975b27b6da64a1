import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from evidence.generators.roughness import measure
from evidence.theory.smoothing import (
    bias_bound,
    gaussian_neuron,
    objective_smoothness,
    theorem5,
    uniform_neuron,
)
from stalesim.simulator.parts.errors import UserError

ONES = (1.0, 1.0, 1.0)


def test_fixture_of_the_specification() -> None:
    constants = theorem5(ONES, ONES, (4, 4, 4), 1.0, (0.1, 0.1))
    assert constants.bias == pytest.approx((84, 44, 4), rel=1e-15)
    assert constants.weight == constants.bias
    assert constants.total == pytest.approx(264, rel=1e-15)


def test_equation_13_by_hand() -> None:
    constants = theorem5(
        (2.0, 3.0, 5.0), (7.0, 1.0, 0.5), (1, 4, 9), 0.5, (0.2, 0.1), 2.0
    )
    last = 2 * 9 / 0.5
    second = last * 5 * 2**2 + (2 * 5) * (2 * 2 * 2 / 0.1)
    first = second * 3 * 2**2 + (2 * 3 * 2 * 5) * (2 * 1 * 2 / 0.2)
    assert constants.bias == pytest.approx((first, second, last), rel=1e-15)
    assert constants.weight == pytest.approx((7 * first, second, last / 2), rel=1e-15)
    expected = 3 * 4**2 + 6 * constants.total + 0.001
    assert objective_smoothness(constants, 3.0, 4.0, 6.0, 0.001) == pytest.approx(
        expected
    )


def test_one_layer_is_the_gaussian_neuron() -> None:
    constants = theorem5((2.0,), (1.0,), (10,), 0.5, ())
    assert constants.bias == (gaussian_neuron(1.0, 10, 0.5),) == (20.0,)


@pytest.mark.parametrize(
    ("width", "exact"), [(1, 0.798), (10, 3.08), (100, 9.98), (512, 22.6)]
)
def test_tight_gaussian_constants(width: int, exact: float) -> None:
    value = gaussian_neuron(1.0, width, 1.0, "tight")
    assert value == pytest.approx(exact, rel=2e-3)  # three digits are printed
    assert value <= math.sqrt(width) <= gaussian_neuron(1.0, width, 1.0)
    assert gaussian_neuron(3.0, width, 0.1, "tight") == pytest.approx(30 * value)


def test_tight_uniform_constants() -> None:
    # with noise in [-sqrt(3) c, sqrt(3) c]: sqrt(d) L / (sqrt(3) c), V-23
    assert uniform_neuron(2.0, 4, 0.1) == pytest.approx(80)
    assert uniform_neuron(2.0, 4, 0.1, "tight") == pytest.approx(40 / math.sqrt(3))


def test_tight_chain_is_below_the_printed_one() -> None:
    arguments = (ONES, ONES, (4, 4, 4), 1.0, (0.1, 0.1))
    tight = theorem5(*arguments, variant="tight")
    assert tight.bias[-1] == pytest.approx(1.8799712, rel=1e-7)  # sqrt2 G(2.5)/G(2)
    assert tight.bias[0] == pytest.approx(1.8799712 + 40 / math.sqrt(3), rel=1e-7)
    assert tight.total < theorem5(*arguments).total / 2


def test_more_noise_is_smoother() -> None:
    def total(c: float, hidden: float) -> float:
        return theorem5(ONES, ONES, (4, 4, 4), c, (hidden, hidden)).total

    assert total(1.0, 0.1) > total(2.0, 0.1) > total(2.0, 0.2)


def test_measured_gradients_stay_below_and_fall_with_the_noise() -> None:
    levels = (0.1, 0.3, 1.0)
    measured = {
        (c, hidden): measure(c, hidden, num_probes=4, num_draws=5_000)
        for c in levels
        for hidden in levels
    }
    for (c, hidden), found in measured.items():
        printed, tight = (
            theorem5(
                found.weight_norms,
                found.input_norms,
                (4, 4, 4),
                c,
                (hidden, hidden),
                variant=variant,
            )
            for variant in ("printed", "tight")
        )
        assert found.weight_norms == pytest.approx(ONES)
        assert found.input_norms[0] == pytest.approx(1.0)
        assert 0.05 < found.ratio < tight.total < printed.total
        for ratio, low, high in zip(
            found.bias_ratios, tight.bias, printed.bias, strict=True
        ):
            assert 0 < ratio < low < high
    biases = np.array(
        [[measured[c, hidden].bias_ratios for hidden in levels] for c in levels]
    )
    # same network, directions and draws throughout. Only the sum over all parameters
    # need not fall: hidden noise makes the next layer's inputs larger.
    assert (np.diff(biases, axis=0) < 0).all()
    assert (np.diff(biases, axis=1) < 0).all()


def test_a_measured_scalar_neuron_is_exact() -> None:
    # one unit wide: the last layer's gradient is E[Phi((v + b) / c)] of a known v
    found = measure(0.5, 1e-9, width=1, num_probes=1, num_draws=4)
    # the noise is gone, all pre-activations are at zero: the slope is phi(0) / c
    assert found.bias_ratios[-1] == pytest.approx(1 / math.sqrt(2 * math.pi) / 0.5)


def test_printed_weight_constant_is_exceeded_by_large_inputs() -> None:
    # one ReLU, x = 10: d/dw E[relu(w x + Z)] = x Phi(w x / c) has slope x^2 phi(0) / c
    x, c, step = 10.0, 1.0, 1e-4
    slope = x * float(special.ndtr(step * x / c) - special.ndtr(0.0)) / step
    printed = theorem5((1.0,), (x,), (1,), c, ())
    assert slope > 3 * printed.weight[0]
    assert slope < x * printed.weight[0]


def test_bias_bound_as_printed() -> None:
    # M (sum_j prod_{l >= j} s^2 w^2)^(1/2) (sum c_l^2 + c^2)^(1/2), by hand:
    # j = 2: (3 * 2)^2 = 36; j = 1: 36 * (1 * 5)^2 = 900
    value = bias_bound(7, (5.0, 2.0), (1.0, 3.0), 0.4, (0.3,))
    assert value == pytest.approx(7 * math.sqrt(936) * 0.5, rel=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_norms": (1.0,)}, "input_norms, widths and hidden_c must have"),
        ({"hidden_c": (0.1, 0.1, 0.1)}, "3, 3 and 2 entries, got 3, 3, 3"),
        ({"c": 0.0}, "noise levels must be > 0"),
        ({"hidden_c": (0.1, -1.0)}, "noise levels must be > 0"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "weight_norms": ONES,
        "input_norms": ONES,
        "widths": (4, 4, 4),
        "c": 1.0,
        "hidden_c": (0.1, 0.1),
    }
    with pytest.raises(UserError, match=message):
        theorem5(**{**arguments, **change})
