"""Clients that are selected by their losses, against loops without any events."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.streams import Purpose, Streams
from tests.reference import preferences_twin as twin
from tests.runs import execute, prepared
from tests.support import SGD, Memory, merge

K, IN_FLIGHT, ROUNDS, SEED = 12, 4, 60, 7
OORT = {"exploration": 0.7, "decay": 0.9, "least": 0.3, "clip": 0.8}
OORT |= {"seconds": 0.8, "penalty": 1.5, "cut_off": 0.9}
PREFERENCES: dict[str, dict[str, Any]] = {
    "power_of_choice": {"candidates": 7},
    "oort": OORT,
}
BASE = merge(
    SGD,
    {
        "problem": {
            "partition": {"kind": "labels", "clients": K, "classes_per_client": 2}
        },
        "protocol": {"kind": "synchronous"},
        "stop": {"commits": ROUNDS},
        "engine": {"precision": "float64"},
    },
)


def tree(kind: str, **changes: Any) -> dict[str, Any]:
    prefer = {"kind": kind, **PREFERENCES[kind]}
    clients = {
        "compute": {"law": "expon", "scale": "m/M"},
        "selection": {"in_flight": IN_FLIGHT, "prefer": prefer},
    }
    return merge(BASE, {"clients": clients, **changes})


def clients_of(memory: Memory) -> list[list[int]]:
    commit, client = (memory.column("jobs", name) for name in ("commit", "client"))
    return [sorted(client[commit == 1 + k].tolist()) for k in range(ROUNDS)]


def twin_of(run: Any, kind: str) -> tuple[list[list[int]], list[float], list[float]]:
    streams, data = Streams(SEED), run.shares.data
    times = [streams.uniforms(Purpose.COMPUTE, c, 0, 4 * ROUNDS) for c in range(K)]
    task = twin.Task(
        inputs=np.hstack([data.x_train, np.ones((len(data.x_train), 1))]),
        labels=np.asarray(data.y_train),
        batch=run.sampler.batch,
        seconds=lambda c, job: -(c + 1) / K * float(np.log1p(-times[c][job])),
        num_clients=K,
        in_flight=IN_FLIGHT,
        step_size=SGD["algorithm"]["step_size"],
        l2=SGD["problem"]["l2"],
    )

    def candidates() -> Iterator[int]:
        for u in streams.uniforms(Purpose.SELECT, 0, 0, 4096):
            yield int(u * K)

    position = [0]

    def uniforms(n: int) -> list[float]:
        first = position[0]
        position[0] += 4 * ((n + 3) // 4)
        return streams.uniforms(Purpose.SELECT, 1, first, n).tolist()

    order = candidates()
    select: Callable[[twin.Known], list[int]]
    if kind == "oort":
        oort = twin.Oort(OORT, K, SGD["algorithm"]["batch"], order, uniforms)

        def select(known: twin.Known) -> list[int]:
            return oort.select(known, IN_FLIGHT)
    else:
        among = PREFERENCES[kind]["candidates"]

        def select(known: twin.Known) -> list[int]:
            return twin.largest_losses(known, IN_FLIGHT, among, order)

    return twin.rounds(task, ROUNDS, select)


@pytest.mark.parametrize("mode", ["compiled", "stepwise"])
@pytest.mark.parametrize("kind", PREFERENCES)
def test_a_selection_by_loss_is_that_of_a_plain_loop(kind: str, mode: str) -> None:
    with jax.enable_x64(True):
        run = prepared(tree(kind), seed=SEED)
        memory, _ = execute([run], mode)
    clients, times, losses = twin_of(run, kind)
    assert clients_of(memory) == clients
    assert len({tuple(each) for each in clients}) > 10  # who is asked does change
    np.testing.assert_allclose(memory.column("commits", "time"), times, rtol=1e-12)
    # Columns are written as float32.
    np.testing.assert_allclose(memory.column("commits", "loss"), losses, rtol=1e-6)
