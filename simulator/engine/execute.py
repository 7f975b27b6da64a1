"""Executes rows on the device, one jitted call each or thousands in one program.

`R` runs are executed together; a single run has no such axis at all.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from ..files.timeline import NO_SAMPLE, NO_SLOT, NO_WORKER, Kind
from .kernel import Event, Info, Kernel, Probeable

if TYPE_CHECKING:
    from .row_stream import Segment

BLOCK = 16
"""Rows of an inner loop where the device is no CPU. The number of turns of such a loop
is in the program: with traced bounds a GPU waits for its host before each turn."""


FEW = (16, 256)
"""Rows of shorter buffers, for worlds that pause for training every few rows."""


class Carry(NamedTuple):
    """The state that goes from row to row.

    Attributes:
        state: the algorithm's.
        slot_version: version that each register holds.
        mismatches: reads of a register that held another version than the record has.
    """

    state: PyTree
    slot_version: Int[Array, " R"]
    mismatches: Int[Array, ""]


def start(
    algorithm: Kernel, problem: PyTree, key: Key[Array, ""], num_registers: int
) -> Carry:
    """Returns the carry before the first row: version 0 in register 0, or in all."""
    slots = jnp.full(num_registers, NO_SLOT, jnp.int32).at[0].set(0)
    if algorithm.per_worker_models:
        slots = jnp.zeros(num_registers, jnp.int32)
    return Carry(algorithm.init(problem, key), slots, jnp.int32(0))


def advance(
    algorithm: Kernel, problem: PyTree, carry: Carry, event: Event
) -> tuple[Carry, Info]:
    """Executes one row, and checks its reads against the record."""
    state, info = algorithm.step(problem, carry.state, event)
    return checked(algorithm, carry, state, event), info


def checked(algorithm: Kernel, carry: Carry, state: PyTree, event: Event) -> Carry:
    """Returns the carry after a row, with the result of the check of its reads.

    A model of a worker's own was written at its last step, or later by an averaging,
    which makes no version; what the worker read was that one, or not an older one.
    """
    slots = carry.slot_version.at[event.keep_slot].set(event.version, mode="drop")
    return Carry(state, slots, carry.mismatches + mismatches(algorithm, slots, event))


def mismatches(
    algorithm: Kernel, slots: Int[Array, " R"], event: Event
) -> Int[Array, ""]:
    """Returns how many reads of a row find another version than the record has.

    Args:
        algorithm: Kernel.
        slots: Version that each register holds when the row reads.
        event: The row, or rows that read at once.
    """
    held = slots.at[event.read_slot].get(mode="fill", fill_value=0)
    recorded = event.version[..., None] - event.staleness
    differs = held > recorded if algorithm.per_worker_models else held != recorded
    return jnp.sum((event.read_slot != NO_SLOT) & differs, dtype=jnp.int32)


class Program:
    """One algorithm on one problem, ready to execute rows.

    Args:
        kernel: Kernel of the run; with a leading axis of runs on every array if
            `batched`.
        problem: Problem on the device, shared by all runs.
        batched: Whether there is an axis of runs.
        shared: Whether all runs have the same rows and samples.
        stepwise: Whether every row is a separate call.
        short_buffers: Whether buffers are short, as in worlds that pause for training:
            each call passes its own, as a copy to the device beforehand costs more.
    """

    def __init__(
        self,
        kernel: Kernel,
        problem: PyTree,
        *,
        batched: bool = False,
        shared: bool = True,
        stepwise: bool = False,
        short_buffers: bool = False,
    ) -> None:
        self.kernel, self.problem = kernel, problem
        self.batched, self.shared, self.stepwise = batched, shared, stepwise
        self._short_buffers = stepwise or short_buffers
        self._block = 1 if jax.default_backend() == "cpu" else BLOCK
        self._info: dict[str, jax.ShapeDtypeStruct] | None = None

    @property
    def num_devices(self) -> int:
        """Devices that share the work."""
        return 1

    def start(self, keys: Key[Array, "*R"], num_registers: int) -> Carry:
        """Returns the carry before the first row, of one run or of all."""
        return _start(
            self.kernel, self.problem, keys, num_registers=num_registers,
            batched=self.batched,
        )  # fmt: skip

    def run(
        self, carry: Carry, events: Event, first: int, last: int, infos: Info
    ) -> tuple[Carry, Info]:
        """Executes the rows from `first` up to, not including, `last`.

        Args:
            carry: donated.
            events: a buffer of rows, always of the same length.
            first: row of the buffer.
            last: row of the buffer.
            infos: diagnostics of the buffer's rows so far, donated.
        """
        if not self.stepwise:
            bounds = np.int32(first), np.int32(last)
            return _run(
                self.kernel, self.problem, carry, events, *bounds, infos,
                batched=self.batched, shared=self.shared, block=self._block,
            )  # fmt: skip
        carry = _settle(self.kernel, carry)
        for row in range(first, last):
            event = row_of(events, row)
            carry, info = _step(self.kernel, self.problem, carry, event)
            for name, value in info.items():
                infos[name][row] = np.asarray(value)
        return carry, infos

    def loaded(self, events: Event) -> PyTree:
        """Returns a buffer of rows where `run` reads it."""
        return events if self._short_buffers else jax.device_put(events)

    def infos(self, carry: Carry, events: Event) -> Info:
        """Returns empty diagnostics for a buffer of rows."""
        length = events.version.shape[0]
        info = self._info
        if info is None:
            event = row_of(events, 0)
            step = _batched(self.batched, self.shared)
            _, info = jax.eval_shape(step, self.kernel, self.problem, carry, event)
            self._info = info
        empty: Any = np.zeros if self._short_buffers else jnp.zeros
        return {k: empty((length, *v.shape), v.dtype) for k, v in info.items()}

    def reveal(
        self, carry: Carry, events: Event, row: int, what: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns a curious server's view of a row, before it is executed."""
        assert isinstance(self.kernel, Probeable)  # a scenario probes no other
        event = row_of(events, row)
        return _reveal(
            self.kernel, self.problem, carry.state, event, what=what,
            batched=self.batched, shared=self.shared,
        )  # fmt: skip

    def evaluate(self, carry: Carry, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the metrics of the current model, of one run or of all."""
        return _evaluate(
            self.kernel, self.problem, carry.state, metrics=metrics,
            batched=self.batched,
        )  # fmt: skip


@partial(jax.jit, static_argnames=("num_registers", "batched"))
def _start(
    algorithm: Kernel,
    problem: PyTree,
    keys: Key[Array, "*R"],
    *,
    num_registers: int,
    batched: bool,
) -> Carry:
    def one(algorithm: Kernel, key: Key[Array, ""]) -> Carry:
        return start(algorithm, problem, key, num_registers)

    return (jax.vmap(one) if batched else one)(algorithm, keys)


def row_of(events: Event, row: int | Int[Array, ""]) -> Event:
    """Returns a row of a buffer."""
    return jax.tree.map(lambda column: column[row], events)


@cache  # a new function would be traced again
def _batched(batched: bool, shared: bool) -> Callable[..., tuple[Carry, Info]]:
    step: Callable[..., tuple[Carry, Info]] = advance
    if batched:
        step = jax.vmap(advance, in_axes=(0, None, 0, None if shared else 0))
    # Traced once for the shapes of its diagnostics and for the program of all rows.
    return jax.jit(step, inline=True)


def settled(algorithm: Kernel, carry: Carry, *, batched: bool) -> Carry:
    """Returns the carry with the rounding errors of its diagnostics mended."""
    settle = type(algorithm).refreshed
    state = (jax.vmap(settle) if batched else settle)(algorithm, carry.state)
    return carry._replace(state=state)


_settle = jax.jit(partial(settled, batched=False), donate_argnums=(1,))


@partial(jax.jit, static_argnames=("batched", "shared", "block"), donate_argnums=(2, 6))
def _run(
    algorithm: Kernel,
    problem: PyTree,
    carry: Carry,
    events: Event,
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    batched: bool,
    shared: bool,
    block: int = 1,
) -> tuple[Carry, Info]:
    step = _batched(batched, shared)
    carry = settled(algorithm, carry, batched=batched)

    def body(row: Int[Array, ""], carried: tuple[Carry, Info]) -> tuple[Carry, Info]:
        carry, infos = carried
        event = row_of(events, row)
        carry, info = step(algorithm, problem, carry, event)
        return carry, {k: infos[k].at[row].set(v) for k, v in info.items()}

    def rows_of_block(
        number: Int[Array, ""], carried: tuple[Carry, Info]
    ) -> tuple[Carry, Info]:
        at = first + number * block
        return jax.lax.fori_loop(0, block, lambda row, c: body(at + row, c), carried)

    carried = carry, infos
    if block > 1:
        whole = (last - first) // block
        carried = jax.lax.fori_loop(0, whole, rows_of_block, carried)
        first = first + whole * block
    return jax.lax.fori_loop(first, last, body, carried)


@partial(jax.jit, donate_argnums=(2,))
def _step(
    algorithm: Kernel, problem: PyTree, carry: Carry, event: Event
) -> tuple[Carry, Info]:
    return advance(algorithm, problem, carry, event)


@partial(jax.jit, static_argnames=("metrics", "batched"))
def _evaluate(
    algorithm: Kernel,
    problem: PyTree,
    state: PyTree,
    *,
    metrics: tuple[str, ...],
    batched: bool,
) -> dict[str, Array]:
    def one(algorithm: Kernel, state: PyTree) -> dict[str, Array]:
        return algorithm.evaluate(problem, state, metrics)

    return (jax.vmap(one) if batched else one)(algorithm, state)


@partial(jax.jit, static_argnames=("what", "batched", "shared"))
def _reveal(
    algorithm: Probeable,
    problem: PyTree,
    state: PyTree,
    event: Event,
    *,
    what: tuple[str, ...],
    batched: bool,
    shared: bool,
) -> dict[str, Array]:
    def one(algorithm: Probeable, state: PyTree, event: Event) -> dict[str, Array]:
        found = algorithm.reveal(problem, state, event)
        return {name: found[name] for name in what}

    of_runs = jax.vmap(one, in_axes=(0, 0, None if shared else 0))
    return (of_runs if batched else one)(algorithm, state, event)


def null_events(
    length: int, width: int, samples: tuple[int, int], runs: int | None = None
) -> Event:
    """Returns a host buffer of NULL rows, which change nothing.

    Args:
        length: Rows of the buffer.
        width: `W`.
        samples: `V` and `S`.
        runs: how many runs have separate rows; None if they share theirs.
    """
    flat = (length,) if runs is None else (length, runs)
    wide = (*flat, width)
    fields: dict[str, Any] = {
        "kind": np.full(flat, Kind.NULL, np.int32),
        "worker": np.full(wide, NO_WORKER, np.int32),
        "job": np.zeros(wide, np.int32),
        "version": np.zeros(flat, np.int32),
        "staleness": np.zeros(wide, np.int32),
        "read_slot": np.full(wide, NO_SLOT, np.int32),
        "keep_slot": np.full(flat, NO_SLOT, np.int32),
        "samples": np.full((*flat, *samples), NO_SAMPLE, np.int32),
    }
    return Event(**fields)


def put(events: Event, at: int, piece: "Segment", run: int | None = None) -> None:
    """Writes rows into a host buffer from row `at` on, of one run or of all."""
    rows = piece.rows
    there = slice(at, at + rows.time.size)
    present = rows.worker != NO_WORKER
    derived = {
        "kind": rows.kind,
        "worker": rows.worker,
        "job": np.where(present, rows.job, 0),
        "version": rows.version,
        "staleness": np.where(present, rows.version[:, None] - rows.read_version, 0),
        "read_slot": rows.read_slot,
        "keep_slot": piece.keep_slot,
        "samples": piece.samples,
    }
    for name, values in derived.items():
        column: np.ndarray = getattr(events, name)
        (column if run is None else column[:, run])[there] = values
