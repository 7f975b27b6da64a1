"""Executes the work of many rows at once, on all devices, and then the rows in order.

In a wave (`simulator.waves`) no row reads what another has written. Its work, the
gradients, is divided among the devices, each job on one of them; then every device
applies all contributions, in the order of the rows. A CPU computes its jobs one after
the other, each as if it were alone (`in_turn`); other devices theirs by one product,
whose last digits differ (`at_once`). Results do not depend on which device computes
what; a program for several may be fused otherwise than one for one, by which a
transformer's last digits differ.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int

from .. import waves
from ..algorithms.base import Divided, Event, Info
from .at_once import PLACES, waves_at_once
from .execute import Carry, Program, null_events
from .in_turn import AXIS, waves_in_turn

COPIED = PartitionSpec()


class Waves(Program):
    """One algorithm on one problem, whose rows are executed in waves.

    Args:
        kernel: Kernel of the run.
        problem: Problem on the device.
        devices: Devices on which jobs are computed; each holds all data and registers.
        at_once: Whether a device computes its jobs by one product, and applies rows
            at once whose steps need nothing of each other; by default where it is no
            CPU, for which it would ask for few and large kernels in vain.
    """

    def __init__(
        self,
        kernel: Divided,
        problem: Any,
        devices: list[Any],
        *,
        at_once: bool | None = None,
    ) -> None:
        super().__init__(kernel, problem)
        on_cpu = devices[0].platform == "cpu"
        self._at_once = not on_cpu if at_once is None else at_once
        self._beyond = PLACES * len(devices) if self._at_once else 0
        self._mesh = Mesh(np.array(devices), (AXIS,))
        self._copies = self._copied((kernel, problem))
        self._keeps_clients = False

    @property
    def num_devices(self) -> int:
        """Devices that share the work of waves."""
        return self._mesh.size

    @property
    def num_at_once(self) -> int:
        """Jobs that a device computes by one product."""
        return PLACES if self._at_once else 1

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
        if self._beyond:
            width, samples = events.worker.shape[1], events.samples.shape[1:]
            beyond = null_events(self._beyond, width, (samples[0], samples[1]))
            events = jax.tree.map(lambda *both: np.concatenate(both), events, beyond)
        return self._copied((events, ends))

    def infos(self, carry: Carry, events: Event) -> Info:
        """Returns empty diagnostics for a buffer of rows."""
        infos = super().infos(_of_first(carry), events)
        beyond = [(0, self._beyond)]
        infos = {
            k: jnp.pad(v, beyond + [(0, 0)] * (v.ndim - 1)) for k, v in infos.items()
        }
        return self._copied(infos)

    def run(
        self, carry: Carry, events: Any, first: int, last: int, infos: Info
    ) -> tuple[Carry, Info]:
        """Executes the rows from `first` up to, not including, `last`, in waves."""
        bounds = np.int32(first), np.int32(last)
        # With several in flight, devices of a CPU may wait for each other for ever.
        jax.block_until_ready((carry, infos))
        return _run(
            *self._copies, self._copied(carry), events, *bounds, infos,
            mesh=self._mesh, at_once=self._at_once,
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


@partial(jax.jit, static_argnames=("mesh", "at_once"), donate_argnums=(2, 6))
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
    at_once: bool,
) -> tuple[Carry, Info]:
    way = waves_at_once if at_once else waves_in_turn
    on_each = jax.shard_map(
        partial(way, num_devices=mesh.size),
        mesh=mesh,
        in_specs=COPIED,
        out_specs=COPIED,
        check_vma=False,  # it does not see that all devices apply the same
    )
    return on_each(kernel, problem, carry, loaded, first, last, infos)
