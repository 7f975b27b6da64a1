"""Metric of the workers' models together."""

from ...metrics import Metric, Models

CONSENSUS_DISTANCE = Metric(
    "consensus_distance",
    "stalesim.simulator.algorithms.decentralised.kernel:consensus_distance",
    meaning="mean squared distance of workers' models from the average model",
    models=Models.ALL_WORKERS,
)
