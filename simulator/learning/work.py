"""The work of a model: operations of the gradient of a row, counted from itself.

XLA counts a program as it was traced, before it is optimised, so the numbers are the
same on every machine. Without compiling, this takes as long as tracing does.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array

from ..config import functions
from ..models.convolution import as_native
from ..models.party import PartyNetwork
from ..models.purity import programs_of
from . import losses, own_functions

if TYPE_CHECKING:
    from .numerics import Numerics

ROWS = 7
"""Rows of the smaller of the two batches that are compared."""


class Operations(NamedTuple):
    """Operations of one gradient of one row.

    Attributes:
        clients: Of a client, one number for all; or of each party, for what it sends
            and the gradient of its own weights.
        server: Of the server's network and the loss, with the gradient of what the
            parties sent; 0 where rows are divided, and in transfer learning.
    """

    clients: tuple[int, ...]
    server: int = 0


def work(numerics: "Numerics") -> Operations:
    """Counts the work of a problem's model.

    A multiplication and an addition are two operations, a comparison is one, a draw of
    a random number eight; a function such as exp or tanh is none. Seven digits are
    exact. The count is of what one more row adds to a batch, so the regulariser and
    whatever else a batch has once are left out. A loop of known length counts as often
    as it runs, one of unknown length once. A model without outputs has no count: 0.

    Args:
        numerics: The problem, whose network and loss are counted in single precision.

    Raises:
        ScenarioError: The model does not fit the data, or is the user's own and fails.
    """
    if numerics.config.model.measured_by is not None:
        return Operations((0,))
    with jax.enable_x64(False), as_native():
        if numerics.config.partition.family == "horizontal":
            return Operations((_of_client(numerics),))
        return _of_parties(numerics)


def operations(function: Callable[..., Any], *arguments: Any) -> float:
    """Returns how many operations a function of arrays takes.

    Args:
        function: What is counted.
        arguments: Its arguments, or their shapes and types.
    """
    return _counted(jax.jit(function).trace(*arguments))


def _counted(traced: Any) -> float:
    """Counts a program, and the bodies of its loops as often as they run."""
    again = (
        length * _counted(body) - _counted_once(body)
        for length, body in _loops(traced.jaxpr.jaxpr)
    )
    return _counted_once(traced) + sum(again)


def _counted_once(traced: Any) -> float:
    """Counts a program as XLA does: the body of a loop, whatever its length, once."""
    found: Any = traced.lower(lowering_platforms=("cpu",)).cost_analysis()
    return (found or {}).get("flops", 0.0)


def _traced(body: Any) -> Any:
    shapes = [
        jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)
        for variable in body.jaxpr.invars
    ]
    return jax.jit(jaxpr_as_fun(body)).trace(*shapes)


def _loops(jaxpr: Any) -> Iterator[tuple[int, Any]]:
    """Yields length and body, traced, of the outermost loops of known length."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            yield equation.params["length"], _traced(equation.params["jaxpr"])
            continue
        for inner in programs_of(equation):
            yield from _loops(inner)


def _per_row(function: Callable[[int], tuple[Any, ...]]) -> int:
    """Returns what one more row adds.

    Args:
        function: Of a number of rows, a function and its arguments.
    """
    few, more = (operations(*function(rows)) for rows in (ROWS, 2 * ROWS))
    return round((more - few) / ROWS)  # XLA adds up in single precision


def _of_client(numerics: "Numerics") -> int:
    few = numerics.first_rows("float32")
    key = jax.random.key(0, impl="unsafe_rbg") if few.takes_key else None
    weights = jax.eval_shape(few.start, jax.random.key(0))
    columns = few.x.shape[1] - few.spare

    def loss(weights: Any, x: Any, y: Any, present: Any) -> Any:
        value, statistics = few.training_loss(weights, x, y, present, key)
        return value, statistics

    def gradient(rows: int) -> tuple[Any, ...]:
        x, y = _shape((rows, columns)), _rows_of(few.y, rows)
        return jax.grad(loss, has_aux=True), weights, x, y, _shape((rows,), bool)

    return _counting(numerics.config, lambda: _per_row(gradient))


def _of_parties(numerics: "Numerics") -> Operations:
    config = numerics.config
    widths = [part.size for part in numerics.columns]
    of_width = {
        own: _of_party(numerics.embedding([own]), own)
        for own in {*config.model.widths_of_parties(widths)}
    }
    clients = tuple(of_width[own] for own in config.model.widths_of_parties(widths))
    if config.transfer is not None:
        return Operations(clients)
    few = numerics.first_rows("float32")
    sent = (len(widths), few.embedding.num_outputs)
    weights = jax.eval_shape(few.start_server, jax.random.key(0))

    def loss(weights: Any, h: Any, y: Any) -> Any:
        return losses.per_sample(few.loss, few.head(weights, h), y).mean()

    def gradient(rows: int) -> tuple[Any, ...]:
        h = _shape((*sent, rows))
        return jax.grad(loss, (0, 1)), weights, h, _rows_of(few.y, rows)

    return Operations(clients, _counting(config, lambda: _per_row(gradient)))


def _of_party(embedding: Any, width: int) -> int:
    """Counts what a party sends of a row, and the gradient of its weights."""
    weights = jax.eval_shape(partial(embedding.init, num_features=width), _key())
    x = np.zeros((1, 1, width), np.float32)
    if isinstance(embedding, PartyNetwork):
        x = embedding.features(x)

    def job(weights: Any, x: Array, slope: Array) -> Any:
        sent, pulled = jax.vjp(lambda w: embedding.apply(w, x), weights)
        return sent, pulled(slope)

    def both(rows: int) -> tuple[Any, ...]:
        slope = _shape((embedding.num_outputs, rows))
        return job, weights, _shape((rows, x.shape[-1])), slope

    return _per_row(both)


def _counting(config: Any, count: Callable[[], int]) -> int:
    """Calls what counts; what a user's own function does wrong is one line."""
    own = own_functions.of_problem(config)
    return functions.calling(*own[0], count) if own else count()


def _key() -> Any:
    return jax.random.key(0)


def _shape(shape: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def _rows_of(array: Array, rows: int) -> Any:
    return _shape((rows, *array.shape[1:]), array.dtype)
