"""Waves whose jobs a device computes one after the other, as a CPU has them fastest."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..algorithms.base import Divided, Event, Info
from .execute import Carry, checked, row_of, settled

AXIS = "device"
"""Axis of the devices that share the work of a wave."""
JOBS_OF_DEVICE = 4
"""Most jobs of a wave for each device, beyond which it is cut: room for all messages of
the longest wave would be copied between devices at each of them."""


def waves_in_turn(
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
    """Executes rows on one of some devices, with the others.

    Args:
        kernel: Kernel of the run.
        problem: The problem.
        carry: Carry before the rows.
        loaded: A buffer of rows, and the ends of its waves.
        first: First row to execute.
        last: First row after those.
        infos: Diagnostics of the buffer's rows so far.
        num_devices: Devices that share the work.
    """
    (events, ends), width = loaded, loaded[0].worker.shape[1]
    me = jax.lax.axis_index(AXIS)
    rows = max(1, JOBS_OF_DEVICE * num_devices // width)
    places = -(-rows * width // num_devices)
    carry = settled(kernel, carry, batched=False)

    def work(state: Any, job: Int[Array, ""], at: Int[Array, ""]) -> Any:
        """Returns what one job of a wave sends."""
        event = _alone(row_of(events, at + job // width), job % width)
        sent = kernel.contribute(problem, state, event)
        return jax.tree.map(lambda leaf: leaf[0], sent)

    def wave(carried: Any) -> Any:
        at, carry, infos, held = carried
        end = jnp.minimum(jnp.minimum(ends[at], at + rows), last)
        opened = kernel.opened(problem, carry.state, row_of(events, at))

        def place(number: Int[Array, ""], held: Any) -> Any:
            sent = work(opened, number * num_devices + me, at)
            return jax.tree.map(lambda held, one: held.at[number].set(one), held, sent)

        jobs = (end - at) * width
        held = jax.lax.fori_loop(0, (jobs - me - 1) // num_devices + 1, place, held)
        sent = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS), held)
        after = applied_in_turn(kernel, problem, carry, events, infos, sent, at, end)
        return end, *after, held

    zero = jnp.int32(0)
    like = jax.eval_shape(work, carry.state, zero, zero)
    held = jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype), like)
    started = (first, carry, infos, held)
    _, carry, infos, _ = jax.lax.while_loop(lambda c: c[0] < last, wave, started)
    return carry, infos


def applied_in_turn(
    kernel: Divided,
    problem: Any,
    carry: Carry,
    events: Event,
    infos: Info,
    sent: Any,
    at: Int[Array, ""],
    end: Int[Array, ""],
) -> tuple[Carry, Info]:
    """Applies the contributions of a wave row by row.

    Args:
        kernel: Kernel of the run.
        problem: The problem.
        carry: Carry before the wave.
        events: The buffer's rows.
        infos: Its diagnostics so far.
        sent: What the wave's jobs send, arrays `[devices, J, ...]`: job j is that of
            device j modulo their number.
        at: First row of the wave.
        end: First row after it.
    """
    num_devices, width = jax.tree.leaves(sent)[0].shape[0], events.worker.shape[1]

    def commit(row: Int[Array, ""], carried: tuple[Carry, Info]) -> tuple[Carry, Info]:
        carry, infos = carried
        job = (row - at) * width + jnp.arange(width, dtype=jnp.int32)
        mine = jax.tree.map(
            lambda leaf: leaf[job % num_devices, job // num_devices], sent
        )
        event = row_of(events, row)
        opened = kernel.opened(problem, carry.state, event)
        state, info = kernel.apply(problem, opened, event, mine)
        infos = {k: infos[k].at[row].set(v) for k, v in info.items()}
        return checked(kernel, carry, state, event), infos

    return jax.lax.fori_loop(at, end, commit, (carry, infos))


def _alone(event: Event, place: Int[Array, ""]) -> Event:
    """Returns a row with one of its workers alone."""

    def one(column: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(column, place, 1)

    own = event.samples.shape[0] > 1
    return event._replace(
        worker=one(event.worker),
        job=one(event.job),
        staleness=one(event.staleness),
        read_slot=one(event.read_slot),
        samples=one(event.samples) if own else event.samples,
    )
