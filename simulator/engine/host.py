"""Executes rows whose clients' work a function of the user's does, on the host.

The rest of a row, registers, clipping, noise, weights, buffers and the server's step,
is the algorithm's own on the device (`divided.Divided`), with the gradients
that were made.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from ..files.timeline import NO_WORKER
from ..parts.errors import ScenarioError
from ..problem.numerics import DeviceProblem
from ..problem.own_work import OwnWork
from .client_work import Divided, Work
from .execute import Carry, Program, checked, row_of, settled
from .kernel import Event, Info


class Host(Program):
    """One algorithm on one problem, with work of the user's own."""

    def __init__(self, kernel: Divided, problem: DeviceProblem, work: OwnWork) -> None:
        super().__init__(kernel, problem)
        self._work = work

    def loaded(self, events: Event) -> tuple[Event, Event]:
        return jax.device_put(events), events

    def infos(self, carry: Carry, events: Event) -> Info:
        length, width = events.worker.shape
        info = self._info
        if info is None:
            parts = self.kernel, self.problem
            _, (read, _) = jax.eval_shape(_opened, *parts, carry, events, 0)
            loss = jax.ShapeDtypeStruct((width,), read.dtype)
            event = row_of(events, 0)
            _, info = jax.eval_shape(_row, *parts, carry, event, (loss, read))
            self._info = info
        return {k: jnp.zeros((length, *v.shape), v.dtype) for k, v in info.items()}

    def run(
        self,
        carry: Carry,
        events: PyTree,
        first: int,
        last: int,
        infos: Info,
    ) -> tuple[Carry, Info]:
        """Executes the rows from `first` up to, not including, `last`, one by one."""
        on_device, rows = events
        parts = self.kernel, self.problem
        carry = _settled(self.kernel, carry)
        own: Any = {k: infos.pop(k) for k in self._work.names if k in infos}
        inputs: Any = None
        for row in range(first, last):
            at = np.int32(row)
            if inputs is None:
                carry, inputs = _opened(*parts, carry, on_device, at)
            made, numbers = self._made(row_of(rows, row), *map(np.asarray, inputs))
            if row + 1 < last:
                carry, infos, inputs = _next(*parts, carry, on_device, at, made, infos)
            else:
                carry, infos = _applied(*parts, carry, on_device, at, made, infos)
            for name, number in numbers.items():
                empty = np.zeros(len(rows.version))
                own.setdefault(name, empty)[row] = number
        clash = sorted(own.keys() & infos)
        if clash:
            raise ScenarioError(
                f"problem.work must return info by new names, got {clash[0]!r}, a "
                "column that the simulator writes; rename it"
            )
        return carry, infos | own

    def evaluate(self, carry: Carry, metrics: tuple[str, ...]) -> dict[str, Array]:
        if not self._work.measures:
            return super().evaluate(carry, metrics)
        weights = np.asarray(self.kernel.read_out(carry.state))
        found: Any = self._work.evaluate(weights, metrics)
        return found

    def _made(
        self,
        event: Event,
        read: Float[np.ndarray, "W ..."],
        step_size: Float[np.ndarray, ""],
    ) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, np.floating]]:
        """Returns losses and messages of a row's workers, and means of their info."""
        losses = np.zeros(len(read), read.dtype)
        messages = np.zeros_like(read)
        found: list[dict[str, float]] = []
        for place, (worker, job) in enumerate(
            zip(event.worker, event.job, strict=True)
        ):
            if worker == NO_WORKER:
                continue
            samples: Any = event.samples[place if len(event.samples) > 1 else 0]
            message, info = self._work.make(
                *(read[place], int(worker), int(job), samples, float(step_size)),
                at_start=bool(event.version == event.staleness[place]),
            )
            losses[place], messages[place] = info["loss"], message
            found.append(info)
        names = self._work.names if found else ()
        return (losses, messages), {k: np.mean([i[k] for i in found]) for k in names}


_settled = jax.jit(partial(settled, batched=False), donate_argnums=(1,))


def _opening(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    events: Event,
    row: Int[Array, ""],
) -> tuple[Carry, tuple[Array, Array]]:
    """Returns the carry with the version before a row kept, and what work needs."""
    event = row_of(events, row)
    state = kernel.opened(problem, carry.state, event)
    inputs = kernel.work_inputs(problem, event, kernel.given(state, event))
    return carry._replace(state=state), inputs


def _row(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    event: Event,
    made: tuple[Array, Array],
) -> tuple[Carry, Info]:
    """Executes a row of which losses and messages have been made."""
    loss, message = made
    work = Work(loss, message, message, {})
    sent = kernel.contribute(problem, carry.state, event, work)
    state, info = kernel.apply(problem, carry.state, event, sent)
    return checked(kernel, carry, state, event), info


_opened = jax.jit(_opening, donate_argnums=(2,))


def _applying(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    events: Event,
    row: Int[Array, ""],
    made: tuple[Array, Array],
    infos: Info,
) -> tuple[Carry, Info]:
    """Executes a row that is opened, and notes its diagnostics."""
    carry, info = _row(kernel, problem, carry, row_of(events, row), made)
    return carry, {k: infos[k].at[row].set(v) for k, v in info.items()}


_applied = jax.jit(_applying, donate_argnums=(2, 6))


def _going_on(
    kernel: Divided,
    problem: DeviceProblem,
    carry: Carry,
    events: Event,
    row: Int[Array, ""],
    made: tuple[Array, Array],
    infos: Info,
) -> tuple[Carry, Info, tuple[Array, Array]]:
    """Executes a row that is opened, and opens the next: one call of a program."""
    carry, infos = _applying(kernel, problem, carry, events, row, made, infos)
    carry, inputs = _opening(kernel, problem, carry, events, row + 1)
    return carry, infos, inputs


_next = jax.jit(_going_on, donate_argnums=(2, 6))
