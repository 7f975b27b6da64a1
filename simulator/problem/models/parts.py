"""The base of all models' options. No JAX here."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ...parts.base import Part
from ...parts.functions import UserFunction
from ..data.base import Dataset
from ..data.outputs import OutputForm

if TYPE_CHECKING:
    from .base import Classifier

Shapes = tuple[tuple[int, ...], ...]
"""Shapes of all arrays, in the order of the flat vector."""


def size(shapes: Shapes) -> int:
    """Returns the length of the flat vector."""
    return sum(map(math.prod, shapes))


def between(shapes: Shapes) -> tuple[bool, ...]:
    """Returns whether each array is a matrix between the first and last layer."""
    layers = [number for number, shape in enumerate(shapes) if len(shape) > 1]
    inner = layers[1:-1]
    return tuple(n in inner and len(shape) == 2 for n, shape in enumerate(shapes))


class ModelCounts(NamedTuple):
    """Facts on a model before there is an array of it.

    Attributes:
        num_weights: Numbers that messages carry, running statistics included.
        num_statistics: Those of them that are measured in a batch, not learned.
        takes_key: Whether training draws random numbers, as dropout does.
    """

    num_weights: int
    num_statistics: int = 0
    takes_key: bool = False


class Model(Part, ABC):
    """Model: its options, its facts that need no JAX, and its network."""

    families: ClassVar[tuple[str, ...]]
    """Divisions of the data that the model is for: `horizontal` and `vertical`. A
    horizontal model serves a party, too: the party sends its outputs."""
    is_linear: ClassVar[bool] = False
    """Whether outputs are linear in features and weights."""
    is_diagonal: ClassVar[bool] = False
    """Whether output j is weight j times column j."""
    sequential: ClassVar[bool] = False
    """Whether its rows are sequences of frames, each with a class."""
    takes_tokens: ClassVar[bool] = False
    """Whether its rows are sequences of tokens, one a frame."""
    shaped: ClassVar[bool] = False
    """Whether it gets rows in their original shapes and types."""

    @abstractmethod
    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the numbers that messages carry, with biases and running statistics.

        Raises:
            ScenarioError: The columns do not fit the model.
        """

    def counts(self, data: Dataset, form: OutputForm) -> ModelCounts:
        """Returns the counts of a model of clients, which hold all columns.

        Raises:
            ScenarioError: The columns or the targets do not fit the model.
        """
        num_features = data.x_train.shape[1]
        return ModelCounts(self.num_weights(num_features, form.num_outputs))

    def of_rows(self, data: Dataset, form: OutputForm) -> "Classifier":
        """Returns the network of clients, a `base.Classifier`.

        Raises:
            ScenarioError: The columns or the targets do not fit the model.
        """
        return self.make(form.num_outputs, data.x_train.shape[1], "horizontal")

    @property
    def measured_by(self) -> UserFunction | None:
        """Function of the user's that measures it; None where its outputs do.

        One that is measured so has no outputs, and `problem.work` makes its gradients.
        """
        return None

    @property
    def normalises_batches(self) -> bool:
        """Whether the samples of a batch are normalised together."""
        return False

    @property
    def num_frames(self) -> int | None:
        """Frames of a row of a sequence; None where it takes any number."""
        return None

    @property
    def num_aligned(self) -> int | None:
        """Hidden units that transfer learning aligns; None where it has none."""
        return None

    @property
    def num_layers(self) -> int | None:
        """Layers in which noise may enter, the last included; None if unknown."""
        return None

    @property
    def activation_of_party(self) -> Literal["relu", "tanh"] | None:
        """Activation of a party's message to a network at the server (VAFL, 10)."""
        return "relu"

    def party_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the weights of a party's network.

        Args:
            num_features: Columns of the party, of one of its views.
            num_outputs: Numbers that it sends of a sample, of a view.
        """
        return self.num_weights(num_features, num_outputs)

    def weights_of_parties(self, widths: Sequence[int], num_outputs: int) -> int:
        """Returns the weights of all parties' networks together."""
        alike = Counter(widths)
        each = {width: self.party_weights(width, num_outputs) for width in alike}
        return sum(each[width] * number for width, number in alike.items())

    def make(self, num_outputs: int, num_features: int, family: str) -> Any:
        """Returns the network: a `base.Classifier`, or of a party a `base.Embedding`.

        Raises:
            ScenarioError: The columns do not fit the model.
        """
        raise NotImplementedError


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
