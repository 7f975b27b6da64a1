"""Worlds that follow what was learned, against loops without any events."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.streams import Purpose, Streams
from tests.reference import adaptive_twin as twin
from tests.reference.methods_support import problem_of
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
    streams, clients = Streams(SEED), run.timeline.num_clients
    draws = [streams.uniforms(Purpose.COMPUTE, c, 0, 4000) for c in range(clients)]
    return twin.Task(
        problem=problem_of(run),
        batch=run.sampler.batch,
        seconds=lambda c, q: -(c + 1) / clients * float(np.log1p(-draws[c][q])),
        num_clients=clients,
        size=SGD["algorithm"]["batch"],
        step_size=SGD["algorithm"]["step_size"],
        **options,
    )


def candidates(clients: int) -> Iterator[int]:
    """Yields clients as the selection draws them."""
    for u in Streams(SEED).uniforms(Purpose.SELECT, 0, 0, 4096):
        yield int(u * clients)


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
    rule.start(task.objective(task.start()))
    steps, times, losses = twin.rounds(
        task,
        number,
        lambda _: dict.fromkeys(range(K), rule.tau),
        lambda time, w: rule.until(time, lambda: task.objective(w)),
    )
    assert rounds_of(memory, number) == steps
    assert len({of[0] for of in steps}) >= 3
    np.testing.assert_allclose(memory.column("commits", "time"), times, rtol=1e-12)
    np.testing.assert_allclose(memory.column("commits", "loss"), losses, rtol=1e-6)


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


@pytest.mark.parametrize("refill", [1, 2, 4])
def test_free_places_are_those_of_a_plain_loop(refill: int) -> None:
    number, many = 300, 9
    selection: dict[str, Any] = {"in_flight": 4, "refill": refill}
    compute = {"law": "expon", "scale": "m/M"}
    tree = {"number": many, "compute": compute, "selection": selection}
    clients, protocol = Clients.model_validate(tree), Asynchronous()
    world = played(protocol, clients, many, SEED, commits=number)
    rows, jobs, _ = everything(world, 64)
    streams = Streams(SEED)
    draws = [streams.uniforms(Purpose.COMPUTE, c, 0, 4 * number) for c in range(many)]

    found = twin.refilled(
        *(selection["in_flight"], refill, number),
        lambda c, job: -(c + 1) / many * float(np.log1p(-draws[c][job])),
        candidates(many),
    )
    client, time, version = map(np.array, zip(*found, strict=True))
    np.testing.assert_array_equal(rows.worker[:, 0], client)
    np.testing.assert_array_equal(rows.read_version[:, 0], version)
    np.testing.assert_allclose(jobs.read_time[:number], time, rtol=1e-12)


OORT = {"exploration": 0.7, "decay": 0.9, "least": 0.3, "clip": 0.8}
OORT |= {"seconds": 0.8, "penalty": 1.5, "cut_off": 0.9}
PREFERENCES = {"power_of_choice": {"candidates": 7}, "oort": OORT}
MANY, PLACES, ROUNDS = 12, 4, 60


def selecting(kind: str) -> Callable[[twin.Known], dict[int, int]]:
    """Returns who is asked for one step, by what is known of last jobs."""
    order, position = candidates(MANY), [0]

    def uniforms(n: int) -> list[float]:
        first = position[0]
        position[0] += 4 * ((n + 3) // 4)
        return Streams(SEED).uniforms(Purpose.SELECT, 1, first, n).tolist()

    oort = twin.Oort(OORT, MANY, SGD["algorithm"]["batch"], order, uniforms)

    def select(known: twin.Known) -> dict[int, int]:
        if kind == "oort":
            return dict.fromkeys(oort.select(known, PLACES), 1)
        chosen = twin.largest_losses(known, PLACES, 7, order)
        return dict.fromkeys(chosen, 1)

    return select


@pytest.mark.parametrize("mode", ["compiled", "stepwise"])
@pytest.mark.parametrize("kind", PREFERENCES)
def test_a_selection_by_loss_is_that_of_a_plain_loop(kind: str, mode: str) -> None:
    prefer = {"kind": kind, **PREFERENCES[kind]}
    shares = {"clients": MANY, "classes_per_client": 2}
    changes = {
        "problem": {"partition": shares},
        "clients": {
            "compute_per": "job",
            "selection": {"in_flight": PLACES, "prefer": prefer},
        },
        "stop": {"commits": ROUNDS},
    }
    run, memory, _ = run_of(changes, mode)
    asked, times, losses = twin.rounds(task_of(run), ROUNDS, selecting(kind))
    commit, client = (memory.column("jobs", name) for name in ("commit", "client"))
    found = [sorted(client[commit == 1 + k].tolist()) for k in range(ROUNDS)]
    assert found == [sorted(clients) for clients in asked]
    assert len({tuple(each) for each in found}) > 10  # who is asked does change
    np.testing.assert_allclose(memory.column("commits", "time"), times, rtol=1e-12)
    # Columns are written as float32.
    np.testing.assert_allclose(memory.column("commits", "loss"), losses, rtol=1e-6)
