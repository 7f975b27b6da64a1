"""Waves whose jobs a device computes and applies at once, in few and large kernels.

What a GPU asks for is many jobs of one shape: a wave has a fixed number of places for
its rows, and those behind its end are NULL rows, of which nothing is kept.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..algorithms.base import Divided, Event, Info
from ..timeline import NO_SLOT, NO_WORKER, Kind
from .execute import Carry, mismatches, row_of, settled
from .in_turn import AXIS, applied_in_turn

PLACES = 16
"""Jobs that a device computes at once. That 16 are the right number is not measured."""


def waves_at_once(
    kernel: Divided,
    problem: Any,
    carry: Carry,
    loaded: tuple[Event, Int[Array, " T"]],
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    num_devices: int,
) -> tuple[Carry, Info]:
    """Executes rows on one of some devices, with the others, as `waves_in_turn` does.

    The register of a wave's first row is written at the end of the wave before: what is
    read and written in one turn of a loop XLA would copy whole.

    Args:
        kernel: Kernel of the run.
        problem: The problem.
        carry: Carry before the rows.
        loaded: A buffer of rows, `PLACES` for each device behind them, and the ends of
            its waves.
        first: First row to execute.
        last: First row after those.
        infos: Diagnostics of the buffer's rows so far, as many as rows.
        num_devices: Devices that share the work.
    """
    events, ends = loaded
    me = jax.lax.axis_index(AXIS)
    places = max(1, PLACES * num_devices // events.worker.shape[1])

    def wave(carried: Any) -> Any:
        at, carry, infos = carried
        end = jnp.minimum(jnp.minimum(ends[at], at + places), last)
        rows = _rows_of(events, at, end, places)
        mine = _contributed(kernel, problem, carry.state, rows, me, num_devices)
        sent = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS), mine)
        found = _applied(kernel, problem, carry, rows, sent)
        if found is None:
            carry, infos = applied_in_turn(
                kernel, problem, carry, events, infos, sent, at, end
            )
        else:
            carry, infos = found[0], _written(infos, found[1], at)
        return end, _opened(kernel, problem, carry, row_of(events, end)), infos

    carry = settled(kernel, carry, batched=False)
    carry = _opened(kernel, problem, carry, row_of(events, first))
    started = (first, carry, infos)
    _, carry, infos = jax.lax.while_loop(lambda c: c[0] < last, wave, started)
    return carry, infos


def _rows_of(
    events: Event, at: Int[Array, ""], end: Int[Array, ""], places: int
) -> Event:
    """Returns the rows of a wave, and NULL rows after them.

    A register is written once, by the latest row: a scatter has no order.

    Args:
        events: A buffer of rows, with at least `places` rows after the wave.
        at: First row of the wave.
        end: First row after it.
        places: Rows to return.
    """
    rows: Event = jax.tree.map(
        lambda column: jax.lax.dynamic_slice_in_dim(column, at, places), events
    )
    within = jnp.arange(places, dtype=jnp.int32) < end - at
    slot = jnp.where(within, rows.keep_slot, NO_SLOT)
    rewritten = jnp.triu(slot[:, None] == slot[None, :], 1).any(axis=1)
    return rows._replace(
        kind=jnp.where(within, rows.kind, Kind.NULL),
        worker=jnp.where(within[:, None], rows.worker, NO_WORKER),
        read_slot=jnp.where(within[:, None], rows.read_slot, NO_SLOT),
        keep_slot=jnp.where(rewritten, NO_SLOT, slot),
    )


def _opened(kernel: Divided, problem: Any, carry: Carry, event: Event) -> Carry:
    """Returns the carry with the version before a wave's first row in its register."""
    slots = carry.slot_version.at[event.keep_slot].set(event.version, mode="drop")
    state = kernel.opened(problem, carry.state, event)
    return carry._replace(state=state, slot_version=slots)


def _contributed(
    kernel: Divided,
    problem: Any,
    state: Any,
    wave: Event,
    me: Int[Array, ""],
    num_devices: int,
) -> Any:
    """Returns what the jobs of a wave send that are one device's: arrays `[J, ...]`.

    Job j of the wave is that of device j modulo their number.
    """
    jobs = _jobs(wave)
    if num_devices > 1:
        total = jobs.kind.shape[0]
        mine = jnp.arange(-(-total // num_devices)) * num_devices + me
        jobs = jax.tree.map(lambda column: column.at[mine].get(mode="clip"), jobs)

    def work(event: Event) -> Any:
        return jax.tree.map(
            lambda leaf: leaf[0], kernel.contribute(problem, state, event)
        )

    return jax.vmap(work)(jobs)


def _applied(
    kernel: Divided, problem: Any, carry: Carry, wave: Event, sent: Any
) -> tuple[Carry, Info] | None:
    """Returns the carry after a wave, and diagnostics of its rows and places.

    None where the kernel applies rows one after the other.

    Args:
        kernel: Kernel of the run.
        problem: The problem.
        carry: Carry before the wave, with the version before it in its register.
        wave: Its rows, from `_rows_of`.
        sent: What their jobs send, arrays `[devices, J, ...]`.
    """
    shape = wave.worker.shape
    number = shape[0] * shape[1]

    def in_order(leaf: Array) -> Array:
        flat = jnp.swapaxes(leaf, 0, 1).reshape(-1, *leaf.shape[2:])
        return flat[:number].reshape(*shape, *leaf.shape[2:])

    found = kernel.apply_together(
        problem, carry.state, wave, jax.tree.map(in_order, sent)
    )
    if found is None:
        return None
    state, info = found
    wrong = carry.mismatches + mismatches(kernel, carry.slot_version, wave)
    slots = carry.slot_version.at[wave.keep_slot].set(wave.version, mode="drop")
    return Carry(state, slots, wrong), info


def _written(infos: Info, info: Info, at: Int[Array, ""]) -> Info:
    """Returns the diagnostics of a buffer with those of a wave.

    Those behind its end are written again, when their rows are executed.
    """
    write = jax.lax.dynamic_update_slice_in_dim
    return {k: write(infos[k], v, at, 0) for k, v in info.items()}


def _jobs(wave: Event) -> Event:
    """Returns a row for each place of a worker, with that worker alone."""
    rows, width = wave.worker.shape

    def of_row(column: Array) -> Array:
        return jnp.repeat(column, width, axis=0)

    def of_worker(column: Array) -> Array:
        return column.reshape(rows * width, 1, *column.shape[2:])

    own = wave.samples.shape[1] > 1
    return Event(
        kind=of_row(wave.kind),
        worker=of_worker(wave.worker),
        job=of_worker(wave.job),
        version=of_row(wave.version),
        staleness=of_worker(wave.staleness),
        read_slot=of_worker(wave.read_slot),
        keep_slot=of_row(wave.keep_slot),
        samples=of_worker(wave.samples) if own else of_row(wave.samples),
    )
