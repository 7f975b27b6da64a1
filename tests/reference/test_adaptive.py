"""Schedules that follow what was learned, against loops without any events."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.protocols import Asynchronous
from stalesim.simulator.streams import Purpose, Streams
from stalesim.simulator.world.clients import Clients
from tests.reference import adaptive_twin as twin
from tests.runs import execute, prepared
from tests.support import SGD, everything, merge, played

K, SEED, MOST = 6, 5, 7
BASE = merge(
    SGD,
    {
        "name": "adaptive",
        "problem": {
            "partition": {"kind": "labels", "clients": K, "classes_per_client": 3}
        },
        "clients": {"compute": {"law": "expon", "scale": "m/M"}, "compute_per": "step"},
        "protocol": {"kind": "synchronous"},
        "engine": {"precision": "float64"},
        "evaluate": {"metrics": ["objective", "gradient_norm_squared"]},
    },
)


def task_of(run: Any, **options: Any) -> twin.Task:
    streams, data = Streams(SEED), run.shares.data
    draws = [streams.uniforms(Purpose.COMPUTE, c, 0, 4000) for c in range(K)]
    return twin.Task(
        inputs=np.hstack([data.x_train, np.ones((len(data.x_train), 1))]),
        labels=np.asarray(data.y_train),
        batch=run.sampler.batch,
        seconds=lambda c, q: -(c + 1) / K * float(np.log1p(-draws[c][q])),
        num_clients=K,
        size=SGD["algorithm"]["batch"],
        step_size=SGD["algorithm"]["step_size"],
        l2=SGD["problem"]["l2"],
        **options,
    )


def run_of(changes: dict[str, Any], mode: str = "compiled") -> tuple[Any, Any, Any]:
    with jax.enable_x64(True):
        run = prepared(merge(BASE, changes), seed=SEED)
        memory, (end,) = execute([run], mode)
    return run, memory, end


def rounds_of(memory: Any, number: int) -> list[dict[int, int]]:
    commit, client, steps = (
        memory.column("jobs", name) for name in ("commit", "client", "local_steps")
    )
    mine = [commit == 1 + k for k in range(number)]
    return [dict(zip(client[m], steps[m], strict=True)) for m in mine]


@pytest.mark.parametrize("mode", ["compiled", "stepwise"])
def test_adacomm_is_that_of_a_plain_loop(mode: str) -> None:
    # Ends of an interval lie within rounds, of which many are shorter than one.
    interval, number = 9.0, 40
    by = {"kind": "adacomm", "interval": interval, "factor": 0.6}
    changes = {
        "algorithm": {"local_steps": MOST},
        "clients": {"local_steps_by": by, "upload": {"latency": {"law": "constant"}}},
        "stop": {"commits": number},
        "evaluate": {"every": {"commits": None, "time": interval}},
    }
    changes["clients"]["upload"]["latency"]["value"] = 0.25
    run, memory, end = run_of(changes, mode)
    assert end["feedback"] == "clients.local_steps_by asks for metrics"
    task, rule = task_of(run, upload=0.25), twin.AdaComm(interval, MOST, 0.6)
    rule.start(task.objective(task.start())[0])
    steps, times, losses = twin.rounds(
        task,
        number,
        lambda _: dict.fromkeys(range(K), rule.tau),
        lambda time, w: rule.until(time, lambda: task.objective(w)[0]),
    )
    assert rounds_of(memory, number) == steps
    assert len({of[0] for of in steps}) >= 3
    np.testing.assert_allclose(memory.column("commits", "time"), times, rtol=1e-12)
    np.testing.assert_allclose(memory.column("commits", "loss"), losses, rtol=1e-6)


def test_flad_is_that_of_a_plain_loop() -> None:
    number, places, least = 40, 4, 2
    prefer = {"kind": "flad", "least_steps": least}
    changes = {
        "algorithm": {"local_steps": MOST},
        "clients": {"selection": {"in_flight": places, "prefer": prefer}},
        "stop": {"commits": number},
    }
    run, memory, _ = run_of(changes)
    steps, times, losses = twin.rounds(
        task_of(run), number, lambda known: twin.flad(known, K, places, least, MOST)
    )
    assert rounds_of(memory, number) == steps
    assert len({tuple(sorted(of)) for of in steps}) > 4
    assert {s for of in steps for s in of.values()} >= {least, MOST}
    np.testing.assert_allclose(memory.column("commits", "time"), times, rtol=1e-12)
    np.testing.assert_allclose(memory.column("commits", "loss"), losses, rtol=1e-6)


@pytest.mark.parametrize("selection", [{"in_flight": 3}, {"in_flight": 4, "refill": 3}])
def test_flad_gives_fewer_steps_where_clients_are_asked_one_by_one(
    selection: dict[str, Any],
) -> None:
    prefer, number = {"kind": "flad", "least_steps": 2}, 80
    changes = {
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"local_steps": MOST},
        "clients": {"selection": selection | {"prefer": prefer}},
        "stop": {"commits": number},
    }
    _, memory, _ = run_of(changes)
    names = ("client", "read_version", "commit", "local_steps")
    table = zip(*(memory.column("jobs", name) for name in names), strict=True)
    jobs = sorted((j for j in table if 1 <= j[2] <= number), key=lambda j: j[2])
    loss = memory.column("commits", "loss").tolist()
    found, expected = [], []
    for client, read, _, steps in jobs:
        known = {j[0]: loss[j[2] - 1] for j in jobs if j[2] <= read}
        chosen = twin.flad_steps(known, client, 2, MOST)
        if abs(chosen - round(chosen)) > 1e-4 or chosen in (2, MOST):
            found.append(int(steps))
            expected.append(math.floor(chosen))
    assert found == expected
    assert len(found) > 60
    assert len({*found}) >= 3  # least, most, and between


def by_staleness(size: int, stale: list[int], *_: Any) -> int:
    return min(max(math.ceil(size * sum(stale) / len(stale) / 0.8), 1), 30)


def by_norms(_: int, __: list[int], norms: dict[int, float], square: float) -> int:
    theta = 0.7
    spread = sum(n**2 for n in norms.values()) / len(norms) - square
    return min(max(math.ceil(max(spread, 0) / (theta**2 * square)), 2), 30)


@pytest.mark.parametrize("kind", ["staleness", "norm_test"])
def test_buffers_are_those_of_a_plain_loop(kind: str) -> None:
    number, every = 60, 4
    options, resize = {
        "staleness": ({"target": 0.8}, by_staleness),
        "norm_test": ({"theta": 0.7, "least": 2}, by_norms),
    }[kind]
    by = {"kind": kind, "most": 30, "every": every, **options}
    changes = {
        "protocol": {"kind": "buffered", "size": 3, "size_by": by},
        "stop": {"commits": number},
        "evaluate": {"every": {"commits": 6}},
    }
    run, memory, end = run_of(changes)
    assert ("feedback" in end) == (kind == "norm_test")
    sizes, times = twin.buffers(task_of(run), number, 3, resize, every, 6)
    commit = memory.column("jobs", "commit")
    found = [int((commit == 1 + k).sum()) for k in range(number)]
    assert found == sizes
    assert len(set(sizes)) >= 3
    jobs = [memory.column("jobs", name) for name in ("applied_time", "commit")]
    ends = [jobs[0][jobs[1] == 1 + k][0] for k in range(number)]
    np.testing.assert_allclose(ends, times, rtol=1e-12)


@pytest.mark.parametrize("refill", [1, 2, 4, None])
def test_free_places_are_those_of_a_plain_loop(refill: int | None) -> None:
    number, many, limit = 300, 9, None
    selection: dict[str, Any] = {"in_flight": 4, "refill": refill}
    if refill is None:
        by = {"target": 2.0, "every": 7}
        selection = {"in_flight": 8, "in_flight_by": {"kind": "staleness", **by}}
        limit = twin.limit_by_staleness(8, 2.0, 7)
    compute = {"law": "expon", "scale": "m/M"}
    tree = {"number": many, "compute": compute, "selection": selection}
    clients, protocol = Clients.model_validate(tree), Asynchronous()
    world = played(protocol, clients, many, SEED, commits=number)
    rows, jobs, _ = everything(world, 64)
    streams = Streams(SEED)
    draws = [streams.uniforms(Purpose.COMPUTE, c, 0, 4 * number) for c in range(many)]

    def candidates() -> Iterator[int]:
        for u in streams.uniforms(Purpose.SELECT, 0, 0, 4096):
            yield int(u * many)

    found = twin.refilled(
        *(selection["in_flight"], refill or 1, number),
        lambda c, job: -(c + 1) / many * float(np.log1p(-draws[c][job])),
        candidates(),
        limit,
    )
    client, time, version = map(np.array, zip(*found, strict=True))
    np.testing.assert_array_equal(rows.worker[:, 0], client)
    np.testing.assert_array_equal(rows.read_version[:, 0], version)
    np.testing.assert_allclose(jobs.read_time[:number], time, rtol=1e-12)
