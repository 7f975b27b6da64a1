"""Bidirectional LSTM layers, of rows that are sequences of frames."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....parts.errors import ScenarioError
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import LstmNetwork, PartyLstm


class Lstm(Model):
    """Bidirectional LSTM layers and a linear projection; logits for every frame.

    A party has an LSTM layer forwards in time in place of the projection and the
    logits, and sends its outputs for the last frame.

    By default the acoustic model of A(DP)²SGD: with 260 features a frame and 32,000
    states it has 43,154,944 weights, the 164.62 MB (of 2**20 bytes) of its Table 2.

    Source: A(DP)²SGD, section 5 (SWB300).
    """

    kind: Literal["lstm"] = "lstm"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    sequential: ClassVar[bool] = True
    """True: the data of clients must have a class for every frame."""
    layers: Annotated[int, Field(ge=1, le=100)] = 6
    """Number of layers, one on the other."""
    cells: Annotated[int, Field(ge=1)] = 512
    """Number of cells of each direction, in each layer."""
    projection: Annotated[int, Field(ge=1)] = 256
    """Outputs of the linear layer between the last of the LSTM and the logits, of
    clients."""
    frames: Annotated[int, Field(ge=1, le=10_000)] = 21
    """Number of frames of a row, which has their features one after the other."""

    def shapes(self, num_features: int, num_outputs: int) -> Shapes:
        """Returns the shapes of all weights, in the order of the flat vector.

        Each layer has, as in PyTorch, weights of its inputs, weights of its own outputs
        and two biases, all for both directions and four gates: input, forget, cell,
        output. Then follow matrix and bias of the projection, and of the logits.

        Raises:
            ScenarioError: The columns do not divide into the frames.
        """
        return (
            *self._of_layers(num_features),
            (self.projection, 2 * self.cells),
            (self.projection,),
            (num_outputs, self.projection),
            (num_outputs,),
        )

    def shapes_of_party(self, num_features: int, num_outputs: int) -> Shapes:
        """Returns the shapes of all weights of a party, in the same order.

        Its last layer has the same arrays as the others, of one direction.

        Raises:
            ScenarioError: The columns do not divide into the frames, or a projection is
                set, which a party does not have.
        """
        if self.projection != type(self).model_fields["projection"].default:
            raise ScenarioError(
                f"problem.model.projection must be left out for a party, which has an "
                f"LSTM layer of problem.server.width cells instead, got "
                f"{self.projection}; remove it"
            )
        gates = 4 * num_outputs
        last = ((gates, 2 * self.cells), (gates, num_outputs), (gates,), (gates,))
        return (*self._of_layers(num_features), *last)

    def _of_layers(self, num_features: int) -> Shapes:
        width, rest = divmod(num_features, self.frames)
        if rest or not width:
            raise ScenarioError(
                f"problem.model.frames must divide the {num_features} columns of the "
                f"data, got {self.frames}; make it the number of frames in a row"
            )
        gates = 4 * self.cells
        layers = [
            ((2, gates, inputs), (2, gates, self.cells), (2, gates), (2, gates))
            for inputs in (width, *[2 * self.cells] * (self.layers - 1))
        ]
        return tuple(shape for layer in layers for shape in layer)

    @property
    def num_frames(self) -> int:
        return self.frames

    @property
    def num_layers(self) -> int:
        return self.layers + 1

    @property
    def activation_of_party(self) -> None:
        return

    def party_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes_of_party(num_features, num_outputs))

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes(num_features, num_outputs))

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "LstmNetwork | PartyLstm":
        from .network import LstmNetwork, PartyLstm

        if family == "vertical":
            self.shapes_of_party(num_features, num_outputs)
            return PartyLstm(self, num_outputs, num_features)
        self.shapes(num_features, num_outputs)
        return LstmNetwork(self, num_outputs, num_features)
