"""The base of all models' options. No JAX here."""

from typing import Any, ClassVar

from simulator.config.parts import Part


class Model(Part):
    """Model: its options, its facts that need no JAX, and its network.

    A subclass has `num_weights(num_features, num_outputs)`, the numbers that messages
    carry, biases and running statistics included.
    """

    families: ClassVar[tuple[str, ...]]
    """Divisions of the data that the model is for: `horizontal` and `vertical`."""
    is_linear: ClassVar[bool] = False
    """Whether outputs are linear in features and weights."""
    transfers: ClassVar[bool] = False
    """Whether it has hidden units that transfer learning aligns."""
    sequential: ClassVar[bool] = False
    """Whether its rows are sequences of `frames` frames, each with a class."""

    @property
    def normalises_batches(self) -> bool:
        """Whether the samples of a batch are normalised together."""
        return False

    def make(self, num_outputs: int, num_features: int, family: str) -> Any:
        """Returns the network: a `base.Classifier`, or of a party a `base.Embedding`.

        Args:
            num_outputs: Number of outputs of a sample, or of a frame.
            num_features: Number of columns of a client or of the widest party.
            family: Division of the data: `horizontal`, `vertical` or `transfer`.

        Raises:
            ScenarioError: The columns do not fit the model.
        """
        return super().make(num_outputs, num_features, family)
