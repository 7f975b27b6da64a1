"""The twin by hand: its formulas are asked of ours in `test_theory_mapa`.

Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding
gives about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7.
"""

import math

import numpy as np
import pytest

from tests.reference import mapa_twin as twin
from tests.reference.mapa_twin import Constants, Options, Problem, Row


@pytest.mark.parametrize(("loss", "num_outputs"), [("logistic", 1), ("softmax", 3)])
def test_gradient_is_that_of_the_objective(loss: str, num_outputs: int) -> None:
    generator = np.random.default_rng(1)
    data = Problem(
        features=generator.normal(size=(20, 4)),
        labels=generator.integers(max(2, num_outputs), size=20),
        loss=loss,
        l2=0.05,
        penalised=np.arange(4) < 3,
    )
    w, batch = generator.normal(size=(4, num_outputs)), np.array([0, 3, 3, 7, 11])
    gradient = twin.mean_gradient(data, w, batch)
    for entry in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[entry] = 1e-6
        up = twin.objective(data, w + step, batch)
        down = twin.objective(data, w - step, batch)
        np.testing.assert_allclose(gradient[entry], (up - down) / 2e-6, atol=1e-7)


def test_audp_by_hand() -> None:
    data = Problem(np.array([[1.0, 2.0]]), np.array([1]), "logistic", l2=0.0)
    c = Constants(
        batch_size=1, sigma=1.0, smoothness=1.0, max_staleness=1, epsilons=(2.0,)
    )
    options = Options(clip_bound=0.5)  # Delta S = 1, scale 1 / 2
    noise = np.array([[0.2], [-0.4]])
    rows = [Row(0, 0, np.array([0]), noise)]
    trace = twin.run("audp", data, rows, np.zeros((2, 1)), c, options)
    gamma = 1 / (2 + math.sqrt(1 + 2 * 0.25 + 1))
    clipped = np.array([-0.5, -1.0]) * 0.5 / math.sqrt(1.25)
    expected = -gamma * (clipped + noise[:, 0] / 2)
    np.testing.assert_allclose(trace.versions[1][:, 0], expected, rtol=1e-12)
    commit = trace.commits[0]
    assert commit.step_size == pytest.approx(gamma, rel=1e-15)
    assert (commit.sensitivity, commit.num_clipped) == (1.0, 1)
    assert commit.noise_norm == pytest.approx(math.sqrt(0.05))
