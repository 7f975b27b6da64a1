"""Executes the work of many rows at once, on all devices, and then the rows in order.

In a wave (`simulator.waves`) no row reads what another has written. Its work, the
gradients, is divided among the devices, each job on one of them; then every device
applies all contributions, in the order of the rows. A device computes its jobs one
after the other, each as if it were alone: by one product they took longer, on a CPU and
on a GPU (evidence/pages/speed.md). Results do not depend on which device computes what;
a program for several may be fused otherwise than one for one, by which a transformer's
last digits differ.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, Key, PyTree

from ..problem.numerics import DeviceProblem
from . import row_waves
from .client_work import Divided
from .execute import Carry, Program, checked, row_of, settled
from .kernel import Event, Info

AXIS = "device"
"""Axis of the devices that share the work of a wave."""
JOBS_OF_DEVICE = 4
"""Most jobs of a wave for each device, beyond which it is cut: room for all messages of
the longest wave would be copied between devices at each of them."""
Tree = TypeVar("Tree")
"""A tree of arrays."""
COPIED = PartitionSpec()


class Waves(Program):
    """One algorithm on one problem, whose rows are executed in waves.

    Args:
        kernel: Kernel of the run.
        problem: Problem on the device.
        devices: Devices on which jobs are computed; each holds all data and registers.
    """

    def __init__(
        self, kernel: Divided, problem: DeviceProblem, devices: Sequence[object]
    ) -> None:
        super().__init__(kernel, problem)
        self._mesh = Mesh(np.array(devices), (AXIS,))
        self._copies = self._copied((kernel, problem))
        self._keeps_clients = False

    @property
    def num_devices(self) -> int:
        return self._mesh.size

    def start(self, keys: Key[Array, "*R"], num_registers: int) -> Carry:
        carry = super().start(keys, num_registers)
        assert isinstance(self.kernel, Divided)
        self._keeps_clients = bool(jax.tree.leaves(self.kernel.kept(carry.state)))
        return carry

    def loaded(self, events: Event) -> PyTree:
        columns = map(np.asarray, (events.worker, events.read_slot, events.keep_slot))
        ends = row_waves.ends(*columns, keeps_clients=self._keeps_clients)
        return self._copied((events, ends))

    def infos(self, carry: Carry, events: Event) -> Info:
        return self._copied(super().infos(_of_first(carry), events))

    def run(
        self,
        carry: Carry,
        events: PyTree,
        first: int,
        last: int,
        infos: Info,
    ) -> tuple[Carry, Info]:
        """Executes the rows from `first` up to, not including, `last`, in waves."""
        bounds = np.int32(first), np.int32(last)
        # With several in flight, devices of a CPU may wait for each other for ever.
        jax.block_until_ready((carry, infos))
        return _run(
            *self._copies, self._copied(carry), events, *bounds, infos,
            mesh=self._mesh,
        )  # fmt: skip

    def reveal(
        self,
        carry: Carry,
        events: PyTree,
        row: int,
        what: tuple[str, ...],
    ) -> dict[str, Array]:
        return super().reveal(_of_first(carry), _of_first(events[0]), row, what)

    def evaluate(self, carry: Carry, metrics: tuple[str, ...]) -> dict[str, Array]:
        return super().evaluate(_of_first(carry), metrics)

    def _copied(self, tree: Tree) -> Tree:
        """Returns a tree of arrays of which every device has all."""
        return jax.device_put(tree, NamedSharding(self._mesh, COPIED))


def _of_first(tree: Tree) -> Tree:
    """Returns the first device's copy of a tree of arrays."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


@partial(jax.jit, static_argnames=("mesh",), donate_argnums=(2, 6))
def _run(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    loaded: tuple[Event, Int[Array, " T"]],
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    mesh: Mesh,
) -> tuple[Carry, Info]:
    on_each = jax.shard_map(
        partial(_in_turn, num_devices=mesh.size),
        mesh=mesh,
        in_specs=COPIED,
        out_specs=COPIED,
        check_vma=False,  # it does not see that all devices apply the same
    )
    return on_each(kernel, problem, carry, loaded, first, last, infos)


def _in_turn(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    loaded: tuple[Event, Int[Array, " T"]],
    first: Int[Array, ""],
    last: Int[Array, ""],
    infos: Info,
    *,
    num_devices: int,
) -> tuple[Carry, Info]:
    """Executes rows on one of some devices, with the others."""
    (events, ends), width = loaded, loaded[0].worker.shape[1]
    me = jax.lax.axis_index(AXIS)
    rows = max(1, JOBS_OF_DEVICE * num_devices // width)
    places = -(-rows * width // num_devices)
    carry = settled(kernel, carry, batched=False)

    def work(state: PyTree, job: Int[Array, ""], at: Int[Array, ""]) -> PyTree:
        """Returns what one job of a wave sends."""
        event = _alone(row_of(events, at + job // width), job % width)
        sent = kernel.contribute(problem, state, event)
        return jax.tree.map(lambda leaf: leaf[0], sent)

    def wave(carried: PyTree) -> PyTree:
        at, carry, infos, held = carried
        end = jnp.minimum(jnp.minimum(ends[at], at + rows), last)
        opened = kernel.opened(problem, carry.state, row_of(events, at))

        def place(number: Int[Array, ""], held: PyTree) -> PyTree:
            sent = work(opened, number * num_devices + me, at)
            return jax.tree.map(lambda held, one: held.at[number].set(one), held, sent)

        jobs = (end - at) * width
        held = jax.lax.fori_loop(0, (jobs - me - 1) // num_devices + 1, place, held)
        sent = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, AXIS), held)
        after = _applied(kernel, problem, carry, events, infos, sent, at, end)
        return end, *after, held

    zero = jnp.int32(0)
    like = jax.eval_shape(work, carry.state, zero, zero)
    held = jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype), like)
    started = (first, carry, infos, held)
    _, carry, infos, _ = jax.lax.while_loop(lambda c: c[0] < last, wave, started)
    return carry, infos


def _applied(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    events: Event,
    infos: Info,
    sent: PyTree,
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
