"""Metric of the model with the noise of the parties' networks."""

from ...metrics import Metric, Models

SMOOTHED_GRADIENT_NORM_SQUARED = Metric(
    "smoothed_gradient_norm_squared",
    "stalesim.simulator.algorithms.vafl.smoothed:gradient_norm_squared",
    meaning="squared norm of the gradient of F averaged over the noise; unbiased",
    label="Squared norm of the smoothed gradient",
    logarithmic=True,
    models=Models.PERTURBED,
)
