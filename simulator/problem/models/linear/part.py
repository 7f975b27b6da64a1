"""Linear model."""

from typing import TYPE_CHECKING, ClassVar, Literal

from ..parts import Model

if TYPE_CHECKING:
    from .network import LinearClassifier, LinearEmbedding


class Linear(Model):
    """Linear: embeddings `x @ w` of a vertical party, or `x @ w + b` of a client."""

    kind: Literal["linear"] = "linear"
    is_linear: ClassVar[bool] = True
    families: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")

    @property
    def num_layers(self) -> int:
        return 1

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return (num_features + 1) * num_outputs

    def party_weights(self, num_features: int, num_outputs: int) -> int:
        return num_features * num_outputs  # the outputs of parties are added up

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "LinearClassifier | LinearEmbedding":
        from .network import LinearClassifier, LinearEmbedding

        kind = LinearEmbedding if family == "vertical" else LinearClassifier
        return kind(num_outputs, num_features)
