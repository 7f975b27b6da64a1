"""Constants that are estimated where a run starts."""

import jax
import numpy as np

from stalesim.simulator.engine.simulation import key_of
from stalesim.simulator.problem.numerics import estimate
from tests.runs import prepared
from tests.support import SGD


def test_estimates_of_a_logistic_model_at_zero() -> None:
    with jax.enable_x64(True):
        run = prepared(SGD, {"engine": {"precision": "float64"}})
        found = estimate(run.problem, key_of(1))
        x, y = np.asarray(run.problem.x), np.asarray(run.problem.y)
    # At zero every class has probability 1/10, and the regulariser has no gradient.
    residual = np.full((len(y), 10), 0.1)
    residual[np.arange(len(y)), y] -= 1
    each = np.einsum("nc,np->ncp", residual, x).reshape(len(y), -1)
    norms = np.linalg.norm(each, axis=1)
    np.testing.assert_allclose(found.bound, norms.max(), rtol=1e-12)
    centred = each - each.mean(axis=0)
    variance = (centred**2).sum(axis=1).mean()
    np.testing.assert_allclose(found.deviation, variance**0.5, rtol=1e-10)
    # The Hessian at zero is (I / 10 - 1 / 100) times the features' second moment, of
    # the first 1,024 rows, and the regulariser beside it.
    moment = np.linalg.eigvalsh(x[:1024].T @ x[:1024] / 1024).max()
    np.testing.assert_allclose(found.smoothness, 0.1 * moment + 0.001, rtol=1e-3)


def test_constants_may_come_from_the_data() -> None:
    known = {"sigma": 5.0, "smoothness": 2.0, "clip_bound": 4.0}
    audp = {"kind": "audp", "epsilon": 1.0, "batch": 11}
    given = prepared(SGD, {"algorithm": audp | known})
    taken = prepared(SGD, {"algorithm": audp | dict.fromkeys(known, "data")})
    found = estimate(taken.problem, key_of(1))
    sensitivity = taken.kernel.sent[0]._noise.sensitivity[0]
    np.testing.assert_allclose(sensitivity, 2 * found.bound / 11, rtol=1e-6)
    assert given.kernel.sent[0]._noise.sensitivity[0] != sensitivity
    # A convex linear model's smoothness is bounded everywhere, not only at the start.
    assert taken.kernel.step_size.curvature[0] > 6 * found.smoothness
