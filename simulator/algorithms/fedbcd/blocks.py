"""The numbers that each party moves, and its optimiser's part in that."""

from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int

from simulator.algorithms.optimizers.rule import AnyRule, shapes_of
from simulator.problems.models.shapes import Shapes
from simulator.problems.vertical import VerticalProblem


class PartyBlock(NamedTuple):
    """The numbers that a party moves: its weights and, if it has labels, the network.

    Attributes:
        weights: Its own model.
        server: Its copy of the network over the outputs, which moves at the labelled
            party alone; None without one.
    """

    weights: Float[Array, "..."]
    server: Float[Array, "*W P0"] | None


def start(rule: AnyRule | None, problem: VerticalProblem, block: PartyBlock) -> Any:
    """Returns the states of all parties' optimisers; None without any."""
    if rule is None:
        return None
    return tuple(
        jax.vmap(partial(rule.init, shapes=shapes))(numbers)
        for numbers, shapes in _numbers(problem, block)
    )


def directed(
    problem: VerticalProblem,
    rule: AnyRule,
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
    found, after = [], []
    for (numbers, shapes), slope, state in zip(
        _numbers(problem, block), jax.tree.leaves(slopes), moments, strict=True
    ):
        update = partial(rule.update, shapes=shapes)
        direction, new = jax.vmap(update)(slope, state, numbers, made)
        found.append(direction)
        after.append(new)
    return PartyBlock(found[0], found[1] if len(found) > 1 else None), tuple(after)


def _numbers(
    problem: VerticalProblem, block: PartyBlock
) -> list[tuple[Float[Array, "W ..."], Shapes | None]]:
    """Returns the parts of a block that are there, with the shapes of their arrays."""
    parts: list[tuple[Any, Any]] = [(block.weights, problem.embedding)]
    if block.server is not None:
        parts.append((block.server, problem.server))
    return [(numbers, shapes_of(model)) for numbers, model in parts]
