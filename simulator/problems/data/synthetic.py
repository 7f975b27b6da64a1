"""Generated data with a planted model."""

import numpy as np
import scipy.special

from simulator.problems.data.base import Dataset
from simulator.problems.data.scaling import finish, split
from simulator.scenario.problems import SyntheticLogistic


def synthetic_logistic(config: SyntheticLogistic) -> Dataset:
    """Draws Gaussian features and labels from a logistic model of random weights.

    The weights have norm 3, so that about nine labels of ten are on the side that the
    model says.
    """
    rng = np.random.default_rng(np.random.SeedSequence(config.data_seed))
    P = config.num_features
    x = rng.standard_normal((config.num_samples, P))
    weights = rng.standard_normal(P)
    weights *= 3 / np.linalg.norm(weights)
    y = (rng.random(config.num_samples) < scipy.special.expit(x @ weights)).astype(np.int32)
    columns = tuple(f"x{i}" for i in range(P))
    return finish(config, "synthetic_logistic", split(config, x, y), columns, largest=None)
