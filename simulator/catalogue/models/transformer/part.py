"""A decoder-only transformer, of rows that are sequences of tokens."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NoReturn

from pydantic import Field, model_validator

from ....parts.base import LocatedError
from ....parts.errors import ScenarioError
from ....problem.data.base import Dataset
from ....problem.data.outputs import OutputForm
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import TransformerNetwork


class Transformer(Model):
    """Decoder-only transformer: for every token of a row, logits of the next one.

    Where rows have one label, it is the token after the last, which alone has logits.

    Layers normalise their inputs first, attention is causal, positions are learned, the
    perceptron's activation is GELU in the form with tanh. No layer has biases.

    Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019);
    without biases, as Chowdhery et al., PaLM (2022), section 2.
    """

    kind: Literal["transformer"] = "transformer"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    sequential: ClassVar[bool] = True
    """True: every token of a row must have a label, the next one, or the last alone."""
    takes_tokens: ClassVar[bool] = True
    layers: Annotated[int, Field(ge=1, le=100)] = 2
    """Number of blocks, one on the other."""
    heads: Annotated[int, Field(ge=1)] = 4
    """Number of heads of attention, among which the width is divided."""
    width: Annotated[int, Field(ge=1)] = 64
    """Numbers by which a token is represented."""
    expansion: Annotated[int, Field(ge=1)] = 4
    """Hidden units of each layer's perceptron, in multiples of the width."""
    tied: bool = True
    """Whether the logits share the embedding's matrix."""

    @model_validator(mode="after")
    def _divided_among_heads(self) -> "Transformer":
        if self.width % self.heads:
            raise LocatedError(
                f"heads must divide the width of {self.width}, got {self.heads}; "
                "change one of them",
            )
        return self

    def shapes(self, num_features: int, num_outputs: int) -> Shapes:
        """Returns the shapes of all weights, in the order of the flat vector.

        First the embeddings of tokens and of positions. Then of each layer: gains of
        the first normalisation; matrices of queries, keys, values and of the outputs of
        attention; gains of the second normalisation; the two matrices of the
        perceptron. Last the gains of the last normalisation and, unless it is tied, the
        matrix of the logits. Matrices are `[outputs, inputs]`.

        Args:
            num_features: Number of tokens of a row.
            num_outputs: Number of logits; one, of two classes, are two tokens.
        """
        width, hidden = self.width, self.expansion * self.width
        square = (width, width)
        attention = ((width,), square, square, square, square)
        perceptron = ((width,), (hidden, width), (width, hidden))
        return (
            (max(2, num_outputs), width),
            (num_features, width),
            *(attention + perceptron) * self.layers,
            (width,),
            *(() if self.tied and num_outputs > 1 else ((num_outputs, width),)),
        )

    def of_rows(self, data: Dataset, form: OutputForm) -> "TransformerNetwork":
        network = self.make(form.num_outputs, data.x_train.shape[1], "horizontal")
        return replace(network, last=not form.positions)

    @property
    def num_layers(self) -> int:
        return self.layers + 1

    def party_weights(self, num_features: int, num_outputs: int) -> NoReturn:
        raise ScenarioError(
            "problem.model.kind must not be 'transformer' for parties, whose columns "
            "are no tokens; take lstm or dense"
        )

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes(num_features, num_outputs))

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "TransformerNetwork":
        from .network import TransformerNetwork

        return TransformerNetwork(self, num_outputs, num_features)
