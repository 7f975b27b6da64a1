"""Privacy: accountants and the theory of perturbed embeddings.

`gdp` counts what a client's releases cost in Gaussian differential privacy and finds
the noise for a target; `smoothing` holds what the same noise does to the objective.
"""

from simulator.privacy.gdp import (
    Accountant,
    Form,
    bound_linear,
    delta_at,
    epsilon,
    increments,
    is_formal,
    level,
    noise_multiplier,
    sensitivity,
)

__all__ = [
    "Accountant",
    "Form",
    "bound_linear",
    "delta_at",
    "epsilon",
    "increments",
    "is_formal",
    "level",
    "noise_multiplier",
    "sensitivity",
]
