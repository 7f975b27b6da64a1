"""Executes the work of many rows at once, on all devices, and then the rows in order.

In a wave (`simulator.waves`) no row reads what another has written. Its work, the
gradients, is divided among the devices, each job on one of them and computed as if it
were alone; then every device applies all contributions, row by row. Results do not
depend on which device computes what; a program for several may be fused otherwise than
one for one, by which a transformer's last digits differ.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int

from .. import waves
from ..algorithms.base import Divided, Event, Info
from ..timeline import NO_SLOT, NO_WORKER, Kind
from .execute import Carry, Program, checked, mismatches, row_of, settled

AXIS = "device"
COPIED = PartitionSpec()
NO_ROW = 2**31 - 1
JOBS_OF_DEVICE = 4
"""Most jobs of a wave for each device, beyond which it is cut: room for all messages of
the longest wave would be copied between devices at each of them."""
PLACES = 16
"""Jobs that a device computes at once where it is no CPU: one program for all waves, of
which places beyond a wave's end are computed, and left. That 16 are the right number is
not measured."""


class Waves(Program):
    """One algorithm on one problem, whose rows are executed in waves.

    Args:
        kernel: Kernel of the run.
        problem: Problem on the device.
        devices: Devices on which jobs are computed; each holds all data and registers.
        together: Whether a device computes its jobs by one product, and applies rows
            at once whose steps need nothing of each other; by default where it is no
            CPU, for which it would ask for few and large kernels in vain.

    Attributes:
        together: The same, decided.
    """

    def __init__(
        self,
        kernel: Divided,
        problem: Any,
        devices: list[Any],
        *,
        together: bool | None = None,
    ) -> None:
        super().__init__(kernel, problem)
        on_cpu = devices[0].platform == "cpu"
        self.together = not on_cpu if together is None else together
        self._mesh = Mesh(np.array(devices), (AXIS,))
        self._copies = self._copied((kernel, problem))
        self._keeps_clients = False

    @property
    def num_devices(self) -> int:
        """Devices that share the work of waves."""
        return self._mesh.size

    def start(self, keys: Any, num_registers: int) -> Carry:
        """Returns the carry before the first row."""
        carry = super().start(keys, num_registers)
        kernel: Any = self.kernel
        self._keeps_clients = bool(jax.tree.leaves(kernel.kept(carry.state)))
        return carry

    def loaded(self, events: Event) -> Any:
        """Returns a buffer of rows on the devices, with the ends of its waves."""
        columns: Any = events.worker, events.read_slot, events.keep_slot
        ends = waves.ends(*columns, keeps_clients=self._keeps_clients)
        return self._copied((events, ends))

    def infos(self, carry: Carry, events: Event) -> Info:
        """Returns empty diagnostics for a buffer of rows."""
        return self._copied(super().infos(_of_first(carry), events))

    def run(
        self, carry: Carry, events: Any, first: int, last: int, infos: Info
    ) -> tuple[Carry, Info]:
        """Executes the rows from `first` up to, not including, `last`, in waves."""
        bounds = np.int32(first), np.int32(last)
        return _run(
            *self._copies, self._copied(carry), events, *bounds, infos,
            mesh=self._mesh, together=self.together,
        )  # fmt: skip

    def reveal(
        self, carry: Carry, events: Any, row: int, what: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns what a curious server sees of a row that is about to be executed."""
        return super().reveal(_of_first(carry), _of_first(events[0]), row, what)

    def evaluate(self, carry: Carry, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the metrics of the current model, measured on one device."""
        return super().evaluate(_of_first(carry), metrics)

    def _copied(self, tree: Any) -> Any:
        """Returns a tree of arrays of which every device has all."""
        return jax.device_put(tree, NamedSharding(self._mesh, COPIED))


def _of_first(tree: Any) -> Any:
    """Returns the first device's copy of a tree of arrays."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


@partial(jax.jit, static_argnames=("mesh", "together"), donate_argnums=(2, 6))
def _run(
    kernel: Divided,
    problem: Any,
    carry: Carry,
    loaded: tuple[Event, Int[Array, " T"]],
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    mesh: Mesh,
    together: bool,
) -> tuple[Carry, Info]:
    on_each = jax.shard_map(
        partial(_of_device, num_devices=mesh.size, together=together),
        mesh=mesh,
        in_specs=COPIED,
        out_specs=COPIED,
        check_vma=False,  # it does not see that all devices apply the same
    )
    return on_each(kernel, problem, carry, loaded, first, last, infos)


def _of_device(
    kernel: Divided,
    problem: Any,
    carry: Carry,
    loaded: tuple[Event, Int[Array, " T"]],
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    num_devices: int,
    together: bool,
) -> tuple[Carry, Info]:
    """Executes rows on one of some devices, with the others."""
    (events, ends), width = loaded, loaded[0].worker.shape[1]
    me = jax.lax.axis_index(AXIS)
    most = PLACES if together else JOBS_OF_DEVICE
    rows = max(1, most * num_devices // width)
    places = -(-rows * width // num_devices)
    carry = settled(kernel, carry, batched=False)

    def work(state: Any, job: Int[Array, ""], at: Int[Array, ""]) -> Any:
        """Returns what one job of a wave sends."""
        event = _alone(row_of(events, at + job // width), job % width)
        sent = kernel.contribute(problem, state, event)
        return jax.tree.map(lambda leaf: leaf[0], sent)

    def commit(row: Int[Array, ""], carried: Any) -> Any:
        carry, infos, sent, at = carried
        job = (row - at) * width + jnp.arange(width, dtype=jnp.int32)
        mine = jax.tree.map(
            lambda leaf: leaf[job % num_devices, job // num_devices], sent
        )
        event = row_of(events, row)
        opened = kernel.opened(problem, carry.state, event)
        state, info = kernel.apply(problem, opened, event, mine)
        infos = {k: infos[k].at[row].set(v) for k, v in info.items()}
        return checked(kernel, carry, state, event), infos, sent, at

    def in_turn(opened: Any, at: Array, end: Array, held: Any) -> Any:
        def place(number: Int[Array, ""], held: Any) -> Any:
            sent = work(opened, number * num_devices + me, at)
            return jax.tree.map(lambda held, one: held.at[number].set(one), held, sent)

        jobs = (end - at) * width
        return jax.lax.fori_loop(0, (jobs - me - 1) // num_devices + 1, place, held)

    def at_once(opened: Any, at: Array) -> Any:
        job = jnp.arange(places, dtype=jnp.int32) * num_devices + me
        return jax.vmap(work, (None, 0, None))(opened, job, at)

    def applied(carry: Carry, infos: Info, sent: Any, at: Array, end: Array) -> Any:
        """Returns the carry after a wave and diagnostics; None if not at once."""
        row = at + jnp.arange(rows, dtype=jnp.int32)
        wave = jax.tree.map(lambda column: column.at[row].get(mode="clip"), events)
        wave = _shortened(wave, row < end)
        jobs = jax.tree.map(
            lambda leaf: (
                jnp.swapaxes(leaf, 0, 1)
                .reshape(-1, *leaf.shape[2:])[: rows * width]
                .reshape(rows, width, *leaf.shape[2:])
            ),
            sent,
        )
        found = kernel.apply_together(problem, carry.state, wave, jobs)
        if found is None:
            return None
        state, info = found
        row = jnp.where(row < end, row, NO_ROW)
        infos = {k: infos[k].at[row].set(v, mode="drop") for k, v in info.items()}
        # All read before any but the first writes.
        slots = carry.slot_version
        slots = slots.at[events.keep_slot[at]].set(events.version[at], mode="drop")
        wrong = carry.mismatches + mismatches(kernel, slots, wave)
        slots = slots.at[wave.keep_slot].set(wave.version, mode="drop")
        return Carry(state, slots, wrong), infos

    def wave(carried: Any) -> Any:
        at, carry, infos, held = carried
        end = jnp.minimum(jnp.minimum(ends[at], at + rows), last)
        opened = kernel.opened(problem, carry.state, row_of(events, at))
        held = at_once(opened, at) if together else in_turn(opened, at, end, held)
        sent = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS), held)
        after = None
        if together:
            after = applied(carry._replace(state=opened), infos, sent, at, end)
        if after is None:
            carried = carry, infos, sent, at
            after = jax.lax.fori_loop(at, end, commit, carried)[:2]
        carry, infos = after
        return end, carry, infos, held

    zero = jnp.int32(0)
    like = jax.eval_shape(work, carry.state, zero, zero)
    held = jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype), like)
    started = (first, carry, infos, held)
    _, carry, infos, _ = jax.lax.while_loop(lambda c: c[0] < last, wave, started)
    return carry, infos


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


def _shortened(events: Event, within: Bool[Array, " T"]) -> Event:
    """Returns the rows of a wave, with NULL rows for those that are not within it.

    A register is written once, by the latest row: a scatter has no order.
    """
    slot = jnp.where(within, events.keep_slot, NO_SLOT)
    rewritten = jnp.triu(slot[:, None] == slot[None, :], 1).any(axis=1)
    return events._replace(
        kind=jnp.where(within, events.kind, Kind.NULL),
        worker=jnp.where(within[:, None], events.worker, NO_WORKER),
        read_slot=jnp.where(within[:, None], events.read_slot, NO_SLOT),
        keep_slot=jnp.where(rewritten, NO_SLOT, slot),
    )
