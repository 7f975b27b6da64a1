"""Steps of VAFL's parties and of its server, from what a meeting of them yields."""

from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int, Key

from ...learning.vertical import VerticalProblem
from ..base import Event
from ..optimizers.arrays import arrays_of_party, arrays_of_server
from ..optimizers.base import UpdateRule
from ..optimizers.rule import kept
from .noise import Draw, EmbeddingNoise, perturbed
from .stores import SnapshotStore, TableStore


class Exchange(NamedTuple):
    """The result of one meeting of parties and server.

    Attributes:
        loss: Loss of each party's batch.
        to_server: gradient of the server's model.
        to_weights: gradients of the parties' models, regularised.
        ages: Ages of the embeddings that the parties' gradients used, commits.
        of_samples: samples that those gradients are of.
        server: the server's model after its update.
        server_moments: State of its optimiser; None without one.
        store: Store after the uploads.
        queried: batches that the next queries are for.
    """

    loss: Float[Array, " W"]
    to_server: Float[Array, " P0"]
    to_weights: Float[Array, "W ..."]
    ages: Int[Array, "M W S"]
    of_samples: Int[Array, "W S"]
    server: Float[Array, " P0"]
    server_moments: Any
    store: TableStore | SnapshotStore
    queried: Int[Array, "M S"] | None


def pull(
    problem: VerticalProblem,
    key: Key[Array, ""],
    noise: EmbeddingNoise | None,
    weights: Float[Array, "*P"],
    x: Float[Array, "S P"],
    of: Draw,
    to_h: Float[Array, "D S"],
) -> Float[Array, "*P"]:
    """Returns the gradient of a party's weights from that of its embeddings."""

    def embed(w: Array) -> Float[Array, "D S"]:
        if noise is None:
            return problem.embedding.apply(w, x)
        return perturbed(problem.embedding, key, noise, w, x, of)

    _, back = jax.vjp(embed, weights)
    return back(to_h)[0]


def start(
    rule: UpdateRule | None,
    problem: VerticalProblem,
    weights: Float[Array, "M ..."],
    server: Float[Array, " P0"],
) -> tuple[Any, Any]:
    """Returns the states of all parties' optimisers and of the server's."""
    if rule is None:
        return None, None
    of_party = partial(rule.init, arrays=arrays_of_party(problem))
    return jax.vmap(of_party)(weights), rule.init(server, arrays_of_server(problem))


def moved(
    rule: UpdateRule | None,
    problem: VerticalProblem,
    step_size: Float[Array, ""],
    weights: Float[Array, "W ..."],
    to_weights: Float[Array, "W ..."],
    moments: Any,
    made: Int[Array, " W"],
) -> tuple[Float[Array, "W ..."], Any]:
    """Returns the parties' models after a step, and their optimisers' states.

    Args:
        rule: Their optimiser; None for plain SGD.
        problem: Vertically divided.
        step_size: Step size.
        weights: Their models.
        to_weights: Gradients.
        moments: States of their optimisers.
        made: Steps that each has made.
    """
    if rule is not None:
        update = partial(rule.update, arrays=arrays_of_party(problem))
        to_weights, moments = jax.vmap(update)(to_weights, moments, weights, made)
    return weights - step_size * to_weights, moments


def server_moved(
    rule: UpdateRule | None,
    problem: VerticalProblem,
    step_size: Float[Array, ""],
    server: Float[Array, " P0"],
    to_server: Float[Array, " P0"],
    moments: Any,
    event: Event,
) -> tuple[Float[Array, " P0"], Any]:
    """Returns the server's model after a step, and its optimiser's state.

    Args:
        rule: Its optimiser; None for plain SGD.
        problem: Vertically divided.
        step_size: Step size of the server.
        server: Its model.
        to_server: Gradient; zero in a NULL row.
        moments: State of its optimiser.
        event: The row.
    """
    if rule is None:
        return server - step_size * to_server, None
    arrays = arrays_of_server(problem)
    way, after = rule.update(to_server, moments, server, event.version, arrays)
    present = event.present().any()
    return kept(present, (server - step_size * way, after), (server, moments))
