"""Linear model."""

from typing import ClassVar, Literal

from ..parts import Model


class Linear(Model):
    """Linear: embeddings `x @ w` of a vertical party, or `x @ w + b` of a client."""

    kind: Literal["linear"] = "linear"
    is_linear: ClassVar[bool] = True
    made_by: ClassVar[str] = "stalesim.simulator.models.linear.network:linear"
    families: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")

    @property
    def num_layers(self) -> int:
        return 1

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return (num_features + 1) * num_outputs
