"""Real gradients: the server's messages and updates, and clients' computation.

The algorithm is the scenario's own kernel, in two parts (`engine.divided.Divided`):
each client does the work of its jobs, on the samples that it has in a simulation, and
the server applies arrived messages, row by row as they are recorded. A message's body
is a tree of arrays, one after the other, raw and little-endian; both sides have their
shapes.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from math import prod

import jax
import numpy as np
from jaxtyping import Array, Int, Key, PyTree
from typing_extensions import override

from ...engine import execute
from ...engine.client_work import Divided
from ...engine.execute import Program, null_events, put, row_of
from ...engine.kernel import Event
from ...engine.row_stream import Segment
from ...engine.simulation import prepare
from ...files.timeline import NO_SLOT, NO_WORKER, Kind
from ...parts.errors import ScenarioError
from ...problem.keys import key_of
from ...scenario.reading import validated
from ...scenario.study import Run, expand
from ...world.recorders.recorder import Recorder
from .learner import Learner, Sent
from .wire import Envelope, WireError


class BodyLayout:
    """The layout of a tree of arrays in a message's body.

    Attributes:
        size: Bytes of the body.
    """

    def __init__(self, like: PyTree) -> None:
        leaves, self._tree = jax.tree.flatten(like)
        self._leaves = [
            (leaf.shape, np.dtype(leaf.dtype).newbyteorder("<")) for leaf in leaves
        ]
        self.size = sum(prod(shape) * kind.itemsize for shape, kind in self._leaves)

    def packed(self, tree: PyTree) -> bytes:
        """Returns the body of a tree."""
        pairs = zip(jax.tree.leaves(tree), self._leaves, strict=True)
        return b"".join(np.asarray(leaf, kind).tobytes() for leaf, (_, kind) in pairs)

    def unpacked(self, body: bytes) -> PyTree:
        """Returns the tree of a body.

        Raises:
            WireError: It has another size.
        """
        if len(body) != self.size:
            raise WireError(f"a message has {len(body)} bytes, and not {self.size}")
        arrays, at = [], 0
        for shape, kind in self._leaves:
            found = np.frombuffer(body, kind, prod(shape), at).reshape(shape)
            arrays.append(found.astype(kind.newbyteorder("="), copy=False))
            at += found.nbytes
        return jax.tree.unflatten(self._tree, arrays)


class TestbedNumerics:
    """A run's kernel and problem, and the layouts of its messages."""

    def __init__(self, run: Run) -> None:
        self.prepared = found = prepare(run)
        kernel, problem = found.kernel, found.problem
        assert isinstance(kernel, Divided)  # as `running` has made sure
        self.parts = kernel, problem
        with self.precise():
            self.key = key_of(run.seed)
            start = partial(execute.start, num_registers=found.timeline.num_registers)
            state = jax.eval_shape(start, kernel, problem, self.key).state
            event = self.event(0, 0)
            given = jax.eval_shape(kernel.given, state, event)
            self.given = BodyLayout(given)
            self.sent = BodyLayout(
                jax.eval_shape(kernel.computed, problem, self.key, event, given)
            )

    def precise(self) -> AbstractContextManager[None]:
        """Returns a context in which numbers have the run's precision."""
        return jax.enable_x64(self.prepared.scenario.engine.precision == "float64")

    def event(
        self,
        client: int,
        job: int,
        version: int = 0,
        samples: Int[np.ndarray, " S"] | None = None,
        read_slot: int = NO_SLOT,
        keep_slot: int = NO_SLOT,
    ) -> Event:
        """Returns a row of one client's job."""
        if samples is None:
            samples = np.zeros(self.prepared.sampler.width)
        alone = {
            "worker": client,
            "job": job,
            "staleness": 0,
            "read_slot": read_slot,
            "samples": samples,
        }
        return Event(
            kind=np.array(Kind.COMMIT, np.int32),  # pyright: ignore
            version=np.array(version, np.int32),  # pyright: ignore
            keep_slot=np.array(keep_slot, np.int32),  # pyright: ignore
            **{name: np.array([value], np.int32) for name, value in alone.items()},  # pyright: ignore
        )


class Gradients(Learner):
    """The server's model: each row is applied as it is recorded.

    Raises:
        UserError: Its clients cannot compute it.
    """

    def __init__(self, run: Run, scenario: Mapping[str, object]) -> None:
        self._numerics = numerics = TestbedNumerics(run)
        self._prepared = prepared = numerics.prepared
        self._refuse_unforeseen()
        self._welcome = {"scenario": scenario, "run": run.number}
        self._recorder: Recorder | None = None
        self._applied = 0  # rows
        self._sent: dict[tuple[int, int], PyTree] = {}
        self._nothing = numerics.sent.unpacked(bytes(numerics.sent.size))
        with numerics.precise():
            self._program = Program(*numerics.parts)
            registers = prepared.timeline.num_registers
            self._carry = self._program.start(numerics.key, registers)
            # Rows that change nothing: they compile what is needed later.
            width = prepared.timeline.width
            self._apply(row_of(null_events(1, width, prepared.samples), 0))
            self._given(numerics.event(NO_WORKER, 0))

    def _refuse_unforeseen(self) -> None:
        """Refuses work that depends on when it will be applied."""
        kernel: PyTree = self._numerics.parts[0]
        sampler = self._prepared.sampler
        # Of one step the size plays no part: the server's step has its own.
        if sampler.steps > 1 and not kernel.local_step_size.is_constant:
            raise ScenarioError(
                "the step size of several local steps must be constant with --compute "
                "gradients, since a client cannot know at which version its "
                "contribution will be applied; take a number"
            )

    @property
    @override
    def most(self) -> int:
        return max(self._numerics.given.size, self._numerics.sent.size)

    @override
    def welcome(self) -> Sent:
        return {"type": "welcome"} | self._welcome, b""

    @override
    def follow(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @override
    def read(self, client: int) -> Sent:
        self.catch_up()
        recorder = self._recorder
        assert recorder is not None
        job, _, version, slot = recorder.current(client)
        keep = recorder.latest(1).write_slot if self._applied else [NO_SLOT]
        event = self._numerics.event(
            *(client, job, recorder.version), read_slot=slot, keep_slot=int(keep[0])
        )
        given = self._numerics.given.packed(self._given(event))
        return {"version": version}, given

    @override
    def arrive(self, client: int, message: Envelope) -> None:
        assert self._recorder is not None
        job = client, self._recorder.current_job(client)
        self._sent[job] = self._numerics.sent.unpacked(message.body)

    @override
    def catch_up(self) -> None:
        recorder, before = self._recorder, self._applied
        if recorder is None or recorder.num_rows == before:
            return
        new = recorder.num_rows - before
        rows = recorder.latest(min(new + 1, recorder.num_rows))
        keep_slot = rows.write_slot[:-1] if before else [NO_SLOT, *rows.write_slot[:-1]]
        rows = rows.slice(rows.time.size - new, rows.time.size)
        samples = self._prepared.sampler.attach(rows)
        events = null_events(new, self._prepared.timeline.width, self._prepared.samples)
        keep = np.array(keep_slot, np.int32)
        put(events, 0, Segment(rows, samples, keep, None, None, False, None))
        for row in range(new):
            self._apply(row_of(events, row))
        self._applied = recorder.num_rows

    @override
    def forget(self, client: int, job: int) -> None:
        self._sent.pop((client, job), None)

    @override
    def model(self) -> np.ndarray:
        with self._numerics.precise():
            return np.asarray(self._numerics.parts[0].read_out(self._carry.state))

    @override
    def measured(self) -> dict[str, float]:
        metrics = self._prepared.scenario.evaluate.metrics
        with self._numerics.precise():
            found = self._program.evaluate(self._carry, metrics)
            return {name: float(one) for name, one in found.items() if not one.ndim}

    def _apply(self, event: Event) -> None:
        jobs = zip(event.worker.tolist(), event.job.tolist(), strict=True)
        sent = [
            self._nothing if job[0] == NO_WORKER else self._sent.pop(job)
            for job in jobs
        ]
        together = jax.tree.map(lambda *leaves: np.concatenate(leaves), *sent)
        numerics, carry = self._numerics, self._carry
        with numerics.precise():
            state = _applied(*numerics.parts, carry.state, event, together)
        self._carry = carry._replace(state=state)

    def _given(self, event: Event) -> PyTree:
        numerics, carry = self._numerics, self._carry
        with numerics.precise():
            state, given = _given(*numerics.parts, carry.state, event)
        self._carry = carry._replace(state=state)
        return given


class Computing:
    """A client's part: it computes its jobs.

    Raises:
        UserError: It cannot be computed here.
    """

    def __init__(self, scenario: Mapping[str, object], run: int, client: int) -> None:
        self._client = client
        self._numerics = TestbedNumerics(expand(validated(scenario))[run])
        nothing = bytes(self._numerics.given.size)
        self.compute(Envelope({"job": 0, "version": 0}, nothing))  # compiles it

    def compute(self, job: Envelope) -> bytes:
        """Returns the body of a job's update."""
        numerics, (kernel, problem) = self._numerics, self._numerics.parts
        number = job.header["job"]
        samples = numerics.prepared.sampler.batch(self._client, number)
        event = numerics.event(self._client, number, job.header["version"], samples)
        given = numerics.given.unpacked(job.body)
        with numerics.precise():
            sent = _computed(kernel, problem, numerics.key, event, given)
            return numerics.sent.packed(sent)


@partial(jax.jit, donate_argnums=(2,))
def _applied(
    kernel: Divided, problem: PyTree, state: PyTree, event: Event, sent: PyTree
) -> PyTree:
    opened = kernel.opened(problem, state, event)
    return kernel.apply(problem, opened, event, sent)[0]


@partial(jax.jit, donate_argnums=(2,))
def _given(
    kernel: Divided, problem: PyTree, state: PyTree, event: Event
) -> tuple[PyTree, PyTree]:
    opened = kernel.opened(problem, state, event)
    return opened, kernel.given(opened, event)


@jax.jit
def _computed(
    kernel: Divided, problem: PyTree, key: Key[Array, ""], event: Event, given: PyTree
) -> PyTree:
    return kernel.computed(problem, key, event, given)
