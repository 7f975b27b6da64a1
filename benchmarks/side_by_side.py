"""Ratios to a hand-written NumPy loop run at the same time, on one core.

    python benchmarks/side_by_side.py [NAME...]     # default: everything

Everything is processor time, in microseconds per update, best of a few alternating
repeats; absolute times on shared machines do not hold, ratios nearly do.
"""

import os

from stalesim.simulator.engine import device

device.before_import()
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import hand_written
import hand_written_gossip
import hand_written_mapa

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.engine import execute, simulation
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.workload import Workload

UPDATES = 20_000
REPEATS = 3


class Nowhere:
    """A writer that keeps nothing."""

    def append(self, table: str, columns: dict[str, Any]) -> None: ...


def processor_time(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def alternately(*works: Callable[[], Any]) -> list[float]:
    """Returns the best processor time of each, measured in turns."""
    times = [[processor_time(work) for work in works] for _ in range(REPEATS)]
    return [min(column) for column in zip(*times, strict=True)]


def scenario(family: str, clients: int, updates: int = UPDATES, **algorithm: Any):
    parts = {
        "sgd": (
            {"kind": "iid", "clients": clients},
            {"kind": "sgd", "step_size": 0.1, "batch": 32, "sampling": "replacement"},
        ),
        "vafl": (
            {"kind": "vertical", "parties": clients},
            {"kind": "vafl", "step_size": 0.1, "batch": 40, "upload": "batch"},
        ),
    }
    partition, defaults = parts[family]
    return Scenario.model_validate(
        {
            "name": "benchmark",
            "problem": {
                "data": {"kind": "mnist", "source": "bundled"},
                "partition": partition,
                "l2": 0.001,
            },
            "clients": {"compute": {"law": "expon"}},
            "protocol": {"kind": "asynchronous"},
            "algorithm": {**defaults, **algorithm},
            "stop": {"commits": updates},
            "evaluate": {"every": {"commits": updates}},
        }
    )


def prepared(config: Scenario, seed: int = 1, number: int = 0) -> Prepared:
    return prepare(Run(number, "base", {}, 0, seed, config))


def whole(runs: list[Prepared], mode: str = "compiled") -> None:
    simulation.execute(runs, mode, Nowhere())  # pyright: ignore[reportArgumentType]


def executing(run: Prepared) -> Callable[[], None]:
    """Returns a function that executes a whole buffer of rows, and nothing else."""
    feed = simulation._row_stream(run, 4096)
    feed.next(1)
    piece = feed.next(4096)
    events = execute.null_events(4096, run.timeline.width, run.samples)
    execute.put(events, 0, piece)
    events = jax.device_put(events)
    program = execute.Program(run.kernel, run.problem)
    carry = program.start(simulation.key_of(1), run.timeline.num_registers)
    held = [carry, program.infos(carry, events)]

    def work() -> None:
        for _ in range(UPDATES // 4096 + 1):
            held[:] = program.run(held[0], events, 0, 4096, held[1])
        jax.block_until_ready(held)

    work()
    return work


def timeline() -> None:
    """(a) the timeline alone, against a bare heapq loop."""
    import heapq

    for clients in (7, 1_000, 100_000):
        updates = 300_000
        plan = SimulatedTimeline(
            Clients(compute=Scipy(law="expon")),
            Asynchronous(),
            clients,
            1,
            Stop(commits=updates),
            Workload(4, 4, clients),
        )

        def play(plan: SimulatedTimeline = plan) -> None:
            for _ in plan.chunks(4096):
                pass

        def heap(clients: int = clients, updates: int = updates) -> None:
            rng = np.random.default_rng(0)
            pending = [(rng.exponential(), m) for m in range(clients)]
            heapq.heapify(pending)
            draws = iter(rng.exponential(size=updates).tolist())
            read, rows = [0] * clients, []
            for version, delay in enumerate(draws):
                now, m = pending[0]
                rows.append((now, m, version, read[m]))
                read[m] = version + 1
                heapq.heapreplace(pending, (now + delay, m))

        played, bare = alternately(play, heap)
        print(
            f"timeline, {clients:>7,} clients: {updates / played:>9,.0f} updates/s; a "
            f"bare heapq loop {updates / bare:>9,.0f}; ratio {bare / played:.2f}"
        )


def one_run() -> None:
    """(b) one run: executing alone, and everything with timeline and trace."""
    for family, clients in (("sgd", 10), ("sgd", 100), ("vafl", 7)):
        run = prepared(scenario(family, clients))
        x, y = arrays(run)

        def hand(x=x, y=y, family=family, clients=clients, block=1) -> None:
            if family == "sgd":
                hand_written.asynchronous_sgd(x, y, clients, UPDATES, 32, 0.1, 1, block)
            else:
                hand_written.vafl(list(x), y, UPDATES, 40, 0.1, 0.001, 1)

        def play(run=run) -> None:
            for chunk in run.timeline.chunks(4096):
                run.sampler.attach(chunk.rows)

        work = executing(run)
        whole([run])
        rows = 4096 * (UPDATES // 4096 + 1)
        engine, everything, played, by_hand, in_blocks = alternately(
            work, lambda run=run: whole([run]), play, hand, partial(hand, block=1024)
        )
        engine *= UPDATES / rows
        print(
            f"{family}, {clients} clients, one run: NumPy {micro(by_hand)}; engine "
            f"{micro(engine)} (x{by_hand / engine:.2f}); with timeline and trace "
            f"{micro(everything)} (x{by_hand / everything:.2f}); timeline and samples "
            f"{micro(played)} ({played / engine:.2f} of executing)",
            flush=True,
        )
        if family == "sgd":
            print(
                f"    NumPy, draws in blocks {micro(in_blocks)} (x"
                f"{in_blocks / engine:.2f} engine, x{in_blocks / everything:.2f})",
                flush=True,
            )
        stepping(run, by_hand)


def arrays(run: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """Returns the data as a user would hold them: without columns that only align."""
    x, spare = np.asarray(run.problem.x), getattr(run.problem, "spare", 0)
    return np.ascontiguousarray(x[..., : x.shape[-1] - spare]), np.asarray(
        run.problem.y
    )


def mapa() -> None:
    """(d) MAPA on logistic regression, K = 10 and 1,000, and its network."""
    for model, clients in (("linear", 10), ("linear", 1000), ("cnn", 5)):
        updates = UPDATES if model == "linear" else 2_000
        run = prepared(edge_cloud(model, clients, updates))
        x, y = arrays(run)

        def hand(x=x, y=y, model=model, clients=clients, updates=updates) -> None:
            if model == "linear":
                hand_written_mapa.mapa(x, y, clients, updates, 0.1, 1)
            else:
                hand_written_mapa.cnn(x, y, updates, 1)

        whole([run])
        everything, by_hand = alternately(lambda run=run: whole([run]), hand)
        registers = (clients + 1) * run.shape.num_weights * 4 / 2**20
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"mapa, {model}, {clients} clients: NumPy {by_hand / updates * 1e6:.1f} "
            f"us; everything {everything / updates * 1e6:.1f} us "
            f"(x{by_hand / everything:.2f}); registers {registers:.1f} MiB, peak of "
            f"the process {used:.0f} MiB",
            flush=True,
        )


def fedbcd() -> None:
    """(e) FedBCD-p of two linear parties, one local step (FedSGD) and fifty."""
    for local_steps, rounds in ((1, 8_000), (50, 400)):
        run = prepared(two_parties(local_steps, rounds))
        y = np.asarray(run.problem.y)
        held = zip(np.asarray(run.problem.x), run.shares.num_features, strict=True)
        x = [own[:, :width].copy() for own, width in held]

        def hand(x=x, y=y, rounds=rounds, local_steps=local_steps) -> None:
            hand_written.fedbcd(x, y, rounds, local_steps, 64, 0.001, 0.001, 1)

        whole([run])
        everything, by_hand = alternately(lambda run=run: whole([run]), hand)
        print(
            f"fedbcd, 2 parties, {local_steps} local steps: NumPy "
            f"{by_hand / rounds * 1e6:.0f} us a round; everything "
            f"{everything / rounds * 1e6:.0f} us (x{by_hand / everything:.2f})",
            flush=True,
        )


def gossip() -> None:
    """(f) AD-PSGD on a ring: logistic regression, and the network of A(DP)2SGD."""
    for hidden, workers, batch, updates in (
        ((), 10, 32, UPDATES),
        ((128, 64), 16, 16, 1_000),
    ):
        run = prepared(ring(hidden, workers, batch, updates))
        x, y = arrays(run)

        def hand(
            x=x, y=y, hidden=hidden, workers=workers, batch=batch, updates=updates
        ) -> None:
            hand_written_gossip.ad_psgd(x, y, workers, updates, hidden, batch, 0.1, 1)

        whole([run])
        everything, by_hand = alternately(lambda run=run: whole([run]), hand)
        print(
            f"gossip, {workers} workers, layers {hidden}: NumPy "
            f"{by_hand / updates * 1e6:.0f} us a step; everything "
            f"{everything / updates * 1e6:.0f} us (x{by_hand / everything:.2f})",
            flush=True,
        )


def ring(hidden: tuple[int, ...], workers: int, batch: int, updates: int) -> Scenario:
    dense = {"kind": "dense", "hidden": list(hidden)}
    return Scenario.model_validate(
        {
            "name": "benchmark",
            "problem": {
                "data": {"kind": "mnist", "source": "bundled"},
                "partition": {"kind": "iid", "clients": workers},
                "model": dense if hidden else {"kind": "linear"},
            },
            "clients": {"compute": {"law": "expon"}},
            "protocol": {
                "kind": "gossip",
                "graph": {"kind": "ring"},
                "initiator": "every",
            },
            "algorithm": {"kind": "psgd", "step_size": 0.1, "batch": batch},
            "stop": {"commits": updates},
            "evaluate": {"every": {"commits": updates}},
        }
    )


def two_parties(local_steps: int, rounds: int) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "benchmark",
            "problem": {
                "data": {
                    "kind": "synthetic_table",
                    "num_samples": 22_000,
                    "views": {"a": 336, "b": 378},
                },
                "partition": {"kind": "vertical", "parties": 2},
                "l2": 0.001,
            },
            "clients": {"compute": {"law": "constant", "value": 1}},
            "protocol": {"kind": "rounds"},
            "algorithm": {
                "kind": "fed_bcd",
                "local_steps": local_steps,
                "step_size": 0.001,
                "batch": 64,
                "sampling": "replacement",
            },
            "stop": {"rounds": rounds},
            "evaluate": {"every": {"rounds": rounds}},
        }
    )


def edge_cloud(model: str, clients: int, updates: int) -> Scenario:
    linear = model == "linear"
    classes = {"classes": "even_odd"} if linear else {}
    private = {"kind": "mapa", "epsilon": 0.1}
    return Scenario.model_validate(
        {
            "name": "benchmark",
            "problem": {
                "data": {"kind": "mnist", "source": "bundled", **classes},
                "partition": {"kind": "iid", "clients": clients},
                "model": {"kind": model},
                "l2": 0.0001,
            },
            "protocol": {"kind": "cyclic"},
            "algorithm": private if linear else {"kind": "asgd"},
            "stop": {"commits": updates},
            "evaluate": {"every": {"commits": updates}},
        }
    )


def stepping(run: Prepared, by_hand: float) -> None:
    """(b) stepwise: one jitted call per row."""
    few = scenario(
        run.run.scenario.algorithm.kind, run.run.scenario.num_clients, UPDATES // 10
    )
    short = prepared(few)
    whole([short], "stepwise")
    (stepwise,) = alternately(lambda: whole([short], "stepwise"))
    print(
        f"    stepwise {micro(stepwise * 10)} (x{by_hand / stepwise / 10:.2f})",
        flush=True,
    )


def batched() -> None:
    """(b) 64 runs in one program, and 32 step sizes on one shared timeline."""
    updates = 2_000
    x, y = arrays(prepared(scenario("sgd", 10)))
    for name, count, mode in (
        ("shared timeline", 32, "shared"),
        ("64 seeds", 64, "batched"),
    ):
        steps = np.geomspace(0.01, 0.3, count).tolist()
        runs = [
            prepared(
                scenario("sgd", 10, updates, step_size=step),
                1 if mode == "shared" else number,
                number,
            )
            for number, step in enumerate(steps)
        ]
        whole(runs, mode)
        together, by_hand = alternately(
            lambda runs=runs, mode=mode: whole(runs, mode),
            lambda: hand_written.asynchronous_sgd(x, y, 10, updates, 32, 0.1, 1),
        )
        per_update = together / count
        print(
            f"sgd, 10 clients, {count} runs ({name}): NumPy "
            f"{by_hand / updates * 1e6:.1f} us; everything "
            f"{per_update / updates * 1e6:.1f} us (x{by_hand / per_update:.2f})",
            flush=True,
        )


def memory() -> None:
    """(c) memory over a long horizon, and one compilation whatever the evaluations."""
    short = scenario("vafl", 7, 20_000)
    whole([prepared(short)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    long = scenario("vafl", 7, 1_000_000)
    whole([prepared(long)])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"memory: {before:.0f} MiB after 20,000 commits, {after:.0f} MiB after "
        f"1,000,000; {execute._run._cache_size()} compilation(s) of the loop"
    )


def micro(seconds: float) -> str:
    return f"{seconds / UPDATES * 1e6:.1f} us"


BENCHMARKS = {
    "timeline": timeline,
    "one_run": one_run,
    "mapa": mapa,
    "fedbcd": fedbcd,
    "gossip": gossip,
    "batched": batched,
    "memory": memory,
}

if __name__ == "__main__":
    os.sched_setaffinity(0, {0})
    for chosen in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[chosen]()
