"""The counts of a problem that messages depend on."""

from typing import NamedTuple

from .models.parts import Shapes


class ProblemShape(NamedTuple):
    """The counts that messages depend on, known before any array is.

    Attributes:
        num_samples: Training samples, N.
        num_features: Columns of all clients together.
        num_outputs: Logits of a sample.
        num_clients: Clients who contribute, K.
        num_weights: Weights of all models together.
        batch: Samples of a local step.
        num_exchanged: Numbers that a party of a vertical problem sends per sample.
        arrays: Shapes of the model's arrays, in the order of its weights; None where
            the algorithm's messages do not depend on them.
    """

    num_samples: int
    num_features: int
    num_outputs: int
    num_clients: int
    num_weights: int
    batch: int
    num_exchanged: int = 1
    arrays: Shapes | None = None
