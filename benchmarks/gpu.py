"""Everything that is to be measured on a GPU, in 40 minutes.

    python benchmarks/gpu.py                        # all tables, the dearest last
    python benchmarks/gpu.py rows repeats           # some of them
    python benchmarks/gpu.py --quick                # tiny sizes, on a CPU, two minutes

Each table is written to a file of its own (--out, default `gpu/`) as soon as it is
measured, so that a machine that is taken away leaves the others. A table that would
begin after --minutes is left out, in words. Times are wall times, least of some
repeats, and on a CPU processor time; compilation is not in them. Processes that a table
needs, for flags that are read once, this script starts.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from stalesim.simulator.engine import device

device.before_import()

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import hand_written

from stalesim.simulator.engine import client_work, simulation
from stalesim.simulator.engine.execute import Program, null_events, put
from stalesim.simulator.engine.execute import _run as run_rows
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.engine.waves import Waves
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

REPEATS = 3
LINEAR: dict[str, Any] = {"kind": "linear"}
DENSE: dict[str, Any] = {"kind": "dense", "hidden": [128, 64]}
CNN: dict[str, Any] = {"kind": "deep_cnn", "channels": [32, 32, 64, 64]}
IMAGES: dict[str, Any] = {
    "kind": "synthetic_images",
    "side": 32,
    "channels": 3,
    "num_samples": 6_000,
}
RESNET: dict[str, Any] = {"kind": "cifar_net", "name": "resnet18"}
TINY: dict[str, Any] = {"kind": "deep_cnn", "channels": [4, 4]}
STARTED = re.compile(r"\s(fusion|custom-call|dot|call|copy|[\w-]*scatter|while)\(")
"""Instructions of a compiled loop that are a kernel, or several, of their own."""


class Size(NamedTuple):
    """How much is measured.

    Attributes:
        rows: Rows of a buffer.
        runs: Numbers of runs that are executed together.
        network: Network of gossip, for CIFAR-10.
        batch: Its batch.
        workers: Its workers.
        convolutions: Network of all else.
    """

    rows: int = 4096
    runs: tuple[int, ...] = (1, 8, 64, 512, 1024)
    network: dict[str, Any] = RESNET
    batch: int = 32
    workers: int = 8
    convolutions: dict[str, Any] = CNN


QUICK = Size(64, (1, 4), TINY, 4, 2, TINY)
Row = tuple[Any, ...]


def clock() -> float:
    """Returns seconds: of this processor where it is the device, else of the wall."""
    on_cpu = jax.default_backend() == "cpu"
    return time.process_time() if on_cpu else time.perf_counter()


def best(work: Callable[[], Any]) -> float:
    """Returns the least time of some repeats, without the first, which compiles."""
    times = []
    for _ in range(REPEATS + 1):
        started = clock()
        jax.block_until_ready(work())
        times.append(clock() - started)
    return min(times[1:])


def setting(model: dict[str, Any], rows: int, **changes: Any) -> Scenario:
    """Returns a scenario of asynchronous SGD: 10 clients, batch 32, on MNIST."""
    tree: dict[str, Any] = {
        "name": "gpu",
        "problem": {
            "data": {"kind": "mnist", "source": "bundled"},
            "partition": {"kind": "iid", "clients": 10},
            "model": model,
        },
        "clients": {"compute": {"law": "expon"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 32},
        "stop": {"commits": rows},
        "evaluate": {"every": {"commits": rows}},
    }
    return Scenario.model_validate(tree | changes)


def gossip(size: Size, network: dict[str, Any]) -> Scenario:
    """Returns A(DP)2SGD's setting: a network for images of 32x32 pixels, gossip."""
    problem = {
        "data": IMAGES,
        "partition": {"kind": "iid", "clients": size.workers},
        "model": network,
    }
    return setting(
        {},
        2 * size.workers,
        problem=problem,
        clients={"compute": {"law": "constant", "value": 1}},
        protocol={"kind": "gossip", "initiator": "every"},
        algorithm={"kind": "psgd", "step_size": 0.1, "batch": size.batch},
    )


def prepared(config: Scenario, seed: int = 1) -> Prepared:
    return simulation.prepare(Run(0, "", {}, 0, seed, config))


class BlockRows:
    """A buffer of rows on the device, and the state that goes through it.

    Args:
        runs: Runs of one structure; several are executed together.
        program: What executes them; by default rows one after the other.
    """

    def __init__(self, runs: list[Prepared], program: Program | None = None) -> None:
        mode = "compiled" if len(runs) == 1 else "batched"
        first = runs[0]
        self.program = program or simulation._program(runs, mode)
        fed = []
        for run in runs:
            feed = simulation._row_stream(run, 4096)
            feed.next(1)
            fed.append(feed.next(4096))
        self.length = max(piece.rows.time.size for piece in fed)
        copies = None if len(runs) == 1 else len(runs)
        events = null_events(self.length, first.timeline.width, first.samples, copies)
        for number, piece in enumerate(fed):
            put(events, 0, piece, None if copies is None else number)
        keys = [simulation.key_of(run.run.seed) for run in runs]
        registers = max(run.timeline.num_registers for run in runs)
        key = keys[0] if copies is None else jnp.stack(keys)
        carry = self.program.start(key, registers)
        infos = self.program.infos(carry, events)
        self.events = self.program.loaded(events)
        self.held: Any = [carry, infos]

    def __call__(self) -> Any:
        """Executes the buffer once more."""
        carry, infos = self.held
        self.held = [*self.program.run(carry, self.events, 0, self.length, infos)]
        return self.held

    def loss(self) -> np.ndarray:
        """Returns the losses of the buffer's rows, without places beyond them."""
        return np.asarray(self.held[1]["loss"])[..., : self.length]


def micros(rows: BlockRows) -> float:
    """Returns microseconds a row."""
    return best(rows) / rows.length * 1e6


def against_loops(size: Size) -> tuple[Row, list[Row]]:
    """Rows against a loop of NumPy and one of jitted calls, us a row."""
    run = prepared(setting(LINEAR, size.rows))
    engine = micros(rows := BlockRows([run]))
    x = np.asarray(run.problem.x)[:, :784]
    x, y = np.ascontiguousarray(x), np.asarray(run.problem.y)
    count = rows.length
    started = time.process_time()
    hand_written.asynchronous_sgd(x, y, 10, count, 32, 0.1, 1, 1024)
    loop = (time.process_time() - started) / count * 1e6
    found: list[Row] = [
        ("SGD, 784-10", engine, loop, jitted(run, count, 32) / count * 1e6)
    ]
    run = prepared(setting(DENSE, size.rows))
    engine = micros(rows := BlockRows([run]))
    found.append(
        ("SGD, 784-128-64-10", engine, "", jitted(run, count, 32) / count * 1e6)
    )
    return ("", "engine", "NumPy on a CPU core", "jitted steps in Python"), found


def jitted(run: Prepared, commits: int, batch: int) -> float:
    """Returns seconds of asynchronous steps, each a call: no simulator."""
    problem, clients = run.problem, run.timeline.num_clients
    rng = np.random.default_rng(1)
    ids = rng.integers(0, problem.x.shape[0], (commits, batch)).astype(np.int32)
    turns = rng.integers(0, clients, commits)

    @partial(jax.jit, donate_argnums=(1,))
    def step(model: Any, read: Any, k: Any, samples: Any) -> Any:
        model = model - 0.1 * client_work.at_once(problem, read[k], samples).message
        return model, read.at[k].set(model)

    start = problem.start(jax.random.key(1))
    held = {"at": (start, jnp.stack([start] * clients))}

    def work() -> Any:
        for commit in range(commits):
            held["at"] = step(*held["at"], int(turns[commit]), ids[commit])
        return held["at"]

    return best(work)


def together(size: Size) -> tuple[Row, list[Row]]:
    """Runs with timelines of their own, executed together and one by one."""
    found: list[Row] = []
    alone = 0.0
    for count in size.runs:
        config = setting(LINEAR, size.rows)
        runs = [prepared(config, seed) for seed in range(1, count + 1)]
        each = micros(BlockRows(runs))
        alone = alone or each
        found.append((count, each, count / each * 1e6, count * alone / each))
    head = ("runs", "us a row of all", "updates a second", "of one by one")
    return head, found


def networks(size: Size) -> tuple[Row, list[Row]]:
    """Gossip, ms a step: rows, the same by hand; gradients in turn and together."""
    run = prepared(gossip(size, size.network))
    commits = 2 * size.workers
    engine = best(BlockRows([run])) / commits * 1e3
    hand = by_hand(run, commits, size.batch) / commits * 1e3
    in_turn, at_once = (t / size.workers * 1e3 for t in batching(run, size.batch))
    head = ("weights", "engine", "by hand", "gradients in turn", "gradients together")
    return head, [(f"{run.shape.num_weights:,}", engine, hand, in_turn, at_once)]


def by_hand(run: Prepared, commits: int, batch: int) -> float:
    """Returns seconds of gossip by jitted calls: average two models, step one."""
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


def batching(run: Prepared, batch: int) -> tuple[float, float]:
    """Returns seconds of all workers' gradients, one after the other and together."""
    problem, workers = run.problem, run.timeline.num_clients
    models = jnp.tile(problem.start(jax.random.key(1)), (workers, 1))
    ids = np.random.default_rng(1).integers(0, problem.x.shape[0], (workers, batch))
    ids = jnp.asarray(ids, jnp.int32)

    def one(model: Any, samples: Any) -> Any:
        return client_work.at_once(problem, model, samples).message

    in_turn = jax.jit(lambda m, s: jax.lax.map(lambda pair: one(*pair), (m, s)))
    at_once = jax.jit(jax.vmap(one))
    return best(lambda: in_turn(models, ids)), best(lambda: at_once(models, ids))


def in_waves(size: Size) -> tuple[Row, list[Row]]:
    """A convolutional network of 16 clients in waves, on some devices."""
    problem = {
        "data": IMAGES,
        "partition": {"kind": "iid", "clients": 16},
        "model": size.convolutions,
    }
    rows = min(size.rows, 256)
    run = prepared(setting({}, rows, problem=problem))
    alone = BlockRows([run])
    found: list[Row] = [("rows", micros(alone), 0.0)]
    kernel: Any = run.kernel
    for count in range(1, len(jax.local_devices()) + 1):
        waves = Waves(kernel, run.problem, jax.local_devices()[:count])
        both = BlockRows([run], waves)
        each = micros(both)
        differs = float(np.abs(both.loss() - alone.loss()).max())
        found.append((f"waves, devices: {count}", each, differs))
    return ("", "us a row", "largest difference of a loss"), found


def products(size: Size) -> tuple[Row, list[Row]]:
    """TF32 against full precision: us a row, and losses after as many rows."""
    found: list[Row] = []
    for name, config in (
        ("SGD, 784-128-64-10", setting(DENSE, size.rows)),
        ("network of gossip", gossip(size, size.convolutions)),
    ):
        exact = None
        for precision in ("highest", "tensorfloat32", "bfloat16"):
            with jax.default_matmul_precision(precision):
                rows = BlockRows([prepared(config)])
                rows()
                loss = rows.loss()
                exact = loss if exact is None else exact
                each = micros(rows)
            differs = float(np.nanmax(np.abs(loss - exact)))
            found.append((name, precision, each, differs))
    return ("", "products", "us a row", "largest difference of a loss"), found


def blocks(size: Size) -> tuple[Row, list[Row]]:
    """Blocks of rows, whose number the program knows, against traced bounds."""
    found: list[Row] = []
    for name, model in (("784-10", LINEAR), ("784-128-64-10", DENSE)):
        run, losses = prepared(setting(model, size.rows)), []
        for block in (1, 16, 256):
            rows = BlockRows([run])
            rows.program._block = block
            rows()
            losses.append(rows.loss())
            same = np.array_equal(losses[0], losses[-1])
            found.append((name, block, micros(rows), same))
    return ("SGD", "rows of a block", "us a row", "losses equal to the bit"), found


def kernels(size: Size) -> tuple[Row, list[Row]]:
    """What the compiled loop starts a row; on a CPU a proxy."""
    found: list[Row] = []
    for name, model in (("784-10", LINEAR), ("784-128-64-10", DENSE)):
        run = prepared(setting(model, min(size.rows, 256)))
        counts = kernels_a_row(BlockRows([run]))
        each = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
        found.append((name, counts.total(), each))
    return ("SGD", "kernels a row", "of which"), found


def kernels_a_row(rows: BlockRows) -> Counter[str]:
    """Returns how many instructions of each kind a turn of the compiled loop starts."""
    (carry, infos), program = rows.held, rows.program
    bounds = np.int32(0), np.int32(rows.length)
    given = carry, rows.events, *bounds, infos
    both = {"batched": False, "shared": True}
    lowered = run_rows.lower(program.kernel, program.problem, *given, **both)
    text = lowered.compile().as_text()
    assert text is not None
    computations = {
        part.split(" ", 2)[0].lstrip("%"): part
        for part in re.split(r"\n\n(?=%|ENTRY)", text)
    }
    entry = next(part for part in re.split(r"\n\n", text) if part.startswith("ENTRY"))
    (body,) = re.findall(r" while\(.*?body=%?([\w.\-]+)", entry)
    counts = Counter(STARTED.findall(computations[body]))
    assert not counts["while"]  # its turns would count, too
    return counts


def repeats(size: Size) -> tuple[Row, list[Row]]:
    """The same rows in processes of their own, with and without deterministic flags."""
    free = "--xla_gpu_deterministic_ops=false"
    found: list[Row] = []
    for name, flags in (("as runs have it", ""), ("free", free)):
        command = [sys.executable, __file__, "--child", json.dumps(size)]
        own = {**os.environ, "XLA_FLAGS": flags}
        lines: list[dict[str, Any]] = []
        for _ in range(3):
            said = subprocess.check_output(command, env=own, text=True)
            lines.append(json.loads(said.splitlines()[-1]))
        for model in lines[0]:
            digests = {line[model][0] for line in lines}
            each = min(line[model][1] for line in lines)
            found.append((model, name, len(digests), each))
    return ("", "flags", "different results of 3", "us a row"), found


def child(size: Size) -> None:
    """Prints digests of losses, and times, of two models."""
    found = {}
    for name, config in (
        ("SGD, 784-128-64-10", setting(DENSE, size.rows)),
        ("network of gossip", gossip(size, size.convolutions)),
    ):
        rows = BlockRows([prepared(config)])
        rows()
        digest = hashlib.sha256(rows.loss().tobytes()).hexdigest()
        found[name] = digest, micros(rows)
    print(json.dumps(found))


def profile(size: Size, out: Path) -> tuple[Row, list[Row]]:
    """A profile of one buffer of rows, for TensorBoard or Perfetto."""
    rows = BlockRows([prepared(setting(LINEAR, size.rows))])
    jax.block_until_ready(rows())
    with jax.profiler.trace(str(out / "profile")):
        jax.block_until_ready(rows())
    files = [str(p.relative_to(out)) for p in (out / "profile").rglob("*.*")]
    return ("rows", "file"), [(rows.length, name) for name in files]


TABLES: dict[str, Callable[[Size], tuple[Row, list[Row]]]] = {
    "kernels": kernels,
    "rows": against_loops,
    "blocks": blocks,
    "together": together,
    "repeats": repeats,
    "products": products,
    "waves": in_waves,
    "networks": networks,
}


def written(cell: Any) -> str:
    """Returns a cell of a table."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


def table(title: str, head: Row, rows: list[Row]) -> str:
    """Returns a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return f"{title}\n\n" + "".join(
        f"| {' | '.join(written(cell) for cell in line)} |\n" for line in lines
    )


def main() -> None:
    """Measures tables and writes each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [*TABLES, "profile"]
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--minutes", type=float, default=40, help="to begin tables in")
    parser.add_argument(
        "--out", type=Path, default=Path("gpu"), help="folder of tables"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Size(*json.loads(options.child)))
        return
    if unknown := {*options.tables} - {*names}:
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    size = QUICK if options.quick else Size()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    here = f"{jax.devices()[0].device_kind}, jax {jax.__version__}, "
    here += f"products in {device.products()}, {os.environ['XLA_FLAGS']}"
    start = time.monotonic()
    measures = {**TABLES, "profile": partial(profile, out=out)}
    for name in options.tables or names:
        since = time.monotonic()
        if since - start > options.minutes * 60:
            print(f"{name}: left out, {options.minutes:g} minutes are over")
            continue
        measure = measures[name]
        about = str(getattr(measure, "func", measure).__doc__)
        try:
            found = table(about, *measure(size))
        except Exception as error:  # the other tables are wanted nevertheless
            found = f"{about}\n\nFailed: {type(error).__name__}: {error}\n"
        found += f"\n{here}; {time.monotonic() - since:.0f} s\n"
        (out / f"{name}.md").write_text(found)
        print(found, flush=True)


if __name__ == "__main__":
    main()
