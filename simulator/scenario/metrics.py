"""The metrics that a model can be evaluated by, and what else of a run is compared."""

from typing import Literal, get_args

Metric = Literal[
    "test_accuracy",
    "test_loss",
    "test_auc",
    "objective",
    "gradient_norm_squared",
    "optimality_gap",
    "consensus_distance",
    "worker_accuracy",
    "worker_loss",
]
METRICS: tuple[str, ...] = get_args(Metric)

OF_WORKERS = ("consensus_distance", "worker_accuracy", "worker_loss")
"""Metrics that speak of workers with models of their own."""
HIGHER_IS_BETTER = ("test_accuracy", "test_auc", "worker_accuracy")
"""Metrics that learning raises; it lowers the others."""
WORST: dict[str, float] = dict.fromkeys(HIGHER_IS_BETTER, 0.0)
"""The worst value that a metric can have; the others may grow without end."""

QUANTITIES = (
    *("virtual_s", "commits", "contributions", "epochs", "rounds", "messages"),
    *("bytes", "upload_bytes", "download_bytes", "epsilon"),
)
"""What a run has come to at its end: its virtual time, its counts, and the largest
epsilon that a client has spent."""
