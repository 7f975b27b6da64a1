"""The simulator's overhead on a network's step, and the gain of batching workers.

    python benchmarks/networks.py [WIDTH [BATCH [WORKERS]]]     # default: 1 256 16

Prints milliseconds per step in A(DP)2SGD's setting (ResNet-18, psgd, gossip): the
engine's compiled rows; the same steps in a hand-written loop of jitted calls, without
any simulator; and the gradients of all workers one after the other and by one vmap.
Wall time on a GPU, for which it is; on CPU, where small widths run, processor time.
Compilation is not in it.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from stalesim.simulator.engine import device

device.before_import()

import jax
import jax.numpy as jnp
import numpy as np

from stalesim.simulator import simulation
from stalesim.simulator.algorithms import client_work
from stalesim.simulator.engine.execute import Program, null_events, put
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

REPEATS = 3


def setting(width: float, batch: int, workers: int, commits: int) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "networks",
            "problem": {
                "data": {"kind": "cifar10"},
                "partition": {"kind": "iid", "clients": workers},
                "model": {"kind": "cifar_net", "name": "resnet18", "width": width},
            },
            "clients": {"compute": {"law": "constant", "value": 1}},
            "protocol": {"kind": "gossip", "initiator": "every"},
            "algorithm": {"kind": "psgd", "step_size": 0.1, "batch": batch},
            "stop": {"commits": commits},
            "evaluate": {"every": {"commits": commits}},
        }
    )


def best(work: Callable[[], Any]) -> float:
    on_cpu = jax.default_backend() == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    times = []
    for _ in range(REPEATS + 1):  # the first one compiles
        started = clock()
        jax.block_until_ready(work())
        times.append(clock() - started)
    return min(times[1:])


def engine(run: simulation.Prepared) -> float:
    """Returns seconds of a whole buffer of rows."""
    program = Program(run.kernel, run.problem)
    carry = program.start(simulation.key_of(1), run.timeline.num_registers)
    feed = simulation._row_stream(run, 4096)
    feed.next(1)
    piece = feed.next(4096)
    rows = piece.rows.time.size
    events = null_events(rows, run.timeline.width, run.samples)
    put(events, 0, piece)
    held = {"carry": carry, "infos": program.infos(carry, events)}
    events = jax.device_put(events)

    def work() -> Any:
        held["carry"], held["infos"] = program.run(
            held["carry"], events, 0, rows, held["infos"]
        )
        return held["carry"]

    return best(work)


def by_hand(run: simulation.Prepared, commits: int, batch: int) -> float:
    """Returns seconds of the same steps: average two models, then step one."""
    problem, workers = run.problem, run.timeline.num_clients
    rng = np.random.default_rng(1)
    shards = np.array_split(rng.permutation(problem.x.shape[0]), workers)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(models: Any, read: Any, k: Any, other: Any, ids: Any) -> Any:
        gradient = client_work.at_once(problem, read[k], ids).message
        mean = 0.5 * (models[k] + models[other])
        own = mean - 0.1 * gradient
        models = models.at[other].set(mean).at[k].set(own)
        return models, read.at[k].set(own)

    start = problem.start(jax.random.key(1))
    held = {"at": (jnp.tile(start, (workers, 1)), jnp.tile(start, (workers, 1)))}

    def work() -> Any:
        for commit in range(commits):
            k = commit % workers
            other = (k + 1) % workers
            ids = rng.choice(shards[k], batch, replace=False).astype(np.int32)
            held["at"] = step(*held["at"], k, other, ids)
        return held["at"]

    return best(work)


def batching(run: simulation.Prepared, batch: int) -> tuple[float, float]:
    """Returns seconds of all workers' gradients, one after the other and together."""
    problem, workers = run.problem, run.timeline.num_clients
    models = jnp.tile(problem.start(jax.random.key(1)), (workers, 1))
    ids = np.random.default_rng(1).integers(0, problem.x.shape[0], (workers, batch))
    ids = jnp.asarray(ids, jnp.int32)

    def one(model: Any, samples: Any) -> Any:
        return client_work.at_once(problem, model, samples).message

    in_turn = jax.jit(lambda m, s: jax.lax.map(lambda pair: one(*pair), (m, s)))
    together = jax.jit(jax.vmap(one))
    return best(lambda: in_turn(models, ids)), best(lambda: together(models, ids))


def main(arguments: list[str]) -> None:
    width = float(arguments[0]) if arguments else 1.0
    batch = int(arguments[1]) if len(arguments) > 1 else 256
    workers = int(arguments[2]) if len(arguments) > 2 else 16
    commits = 2 * workers
    config = setting(width, batch, workers, commits)
    run = simulation.prepare(Run(0, "", {}, 0, 1, config))
    simulated = engine(run) / commits * 1e3
    hand = by_hand(run, commits, batch) / commits * 1e3
    in_turn, together = (t / workers * 1e3 for t in batching(run, batch))
    print(f"{jax.devices()[0].device_kind}: ResNet-18, width {width:g}, batch {batch},")
    print(f"{workers} workers, {run.shape.num_weights:,} weights; ms a step:")
    print(f"engine {simulated:.2f}, by hand {hand:.2f} ({simulated / hand - 1:+.1%})")
    print(f"gradients in turn {in_turn:.2f}, together {together:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
