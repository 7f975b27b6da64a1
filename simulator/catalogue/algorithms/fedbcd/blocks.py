"""The numbers that each party moves, and its optimiser's part in that."""

from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int

from ....engine.optimizers.arrays import (
    ModelArrays,
    UpdateRule,
    arrays_of_party,
    arrays_of_server,
)
from ....problem.vertical import VerticalProblem


class PartyBlock(NamedTuple):
    """The numbers that a party moves: its weights and, if it has labels, the network.

    Attributes:
        weights: Its own model.
        server: Its copy of the network over the outputs, which moves at the labelled
            party alone; None without one.
    """

    weights: Float[Array, "..."]
    server: Float[Array, "*W P0"] | None = None


def start(rule: UpdateRule | None, problem: VerticalProblem, block: PartyBlock) -> Any:
    """Returns the states of all parties' optimisers; None without any."""
    if rule is None:
        return None
    return tuple(
        jax.vmap(partial(rule.init, arrays=arrays))(numbers)
        for numbers, arrays in _numbers(problem, block)
    )


def directed(
    problem: VerticalProblem,
    rule: UpdateRule,
    block: PartyBlock,
    slopes: PartyBlock,
    moments: Any,
    made: Int[Array, " W"],
) -> tuple[PartyBlock, Any]:
    """Returns an optimiser's directions in place of gradients, and its states.

    Args:
        problem: Vertically divided.
        rule: The parties' optimiser.
        block: Their numbers.
        slopes: Gradients.
        moments: States, of the weights and of the copies of the network.
        made: Local steps that each party has made.
    """
    found = [
        jax.vmap(partial(rule.update, arrays=arrays))(slope, state, numbers, made)
        for (numbers, arrays), slope, state in zip(
            _numbers(problem, block), jax.tree.leaves(slopes), moments, strict=True
        )
    ]
    directions, after = zip(*found, strict=True)
    return PartyBlock(*directions), after


def _numbers(
    problem: VerticalProblem, block: PartyBlock
) -> list[tuple[Float[Array, "W ..."], ModelArrays]]:
    """Returns the parts of a block that are there, with their arrays."""
    parts: list[tuple[Any, ModelArrays]] = [(block.weights, arrays_of_party(problem))]
    if block.server is not None:
        parts.append((block.server, arrays_of_server(problem)))
    return parts
