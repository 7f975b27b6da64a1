"""Everything that is to be measured on a GPU, in 14 minutes, by its worth.

    python benchmarks/gpu.py                        # all, in order
    python benchmarks/gpu.py rows together          # some of it
    python benchmarks/gpu.py --quick                # tiny sizes, on a CPU

Each part is written to a file of its own (--out, default `gpu/`) as soon as it is
measured, so that a machine that is taken away leaves the others. One that would begin
after --minutes is left out, in words. `fedbcd` is a study whose folder the next loan
continues. Times are wall times, least of some repeats, and on a CPU processor time;
compilation is not in them.
"""

import argparse
import os
import subprocess
import sys
import time
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
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, expand

REPEATS = 3
LINEAR: dict[str, Any] = {"kind": "linear"}
DENSE: dict[str, Any] = {"kind": "dense", "hidden": [128, 64]}
CNN: dict[str, Any] = {"kind": "deep_cnn", "channels": [32, 32, 64, 64]}
MODELS = {
    "784-10": LINEAR,
    "784-128-64-10": DENSE,
    "four convolutions": CNN,
    "1,000 hidden": {"kind": "dense", "hidden": [1000, 1000]},
}
FEDBCD = "scenarios/fedbcd/mnist_cnn.yaml"
WIDE = (
    "problem.model.channels=[64, 64]",
    "problem.model.dense=256",
    "stop.target.test_auc=0.997",
    "stop.rounds=2000",
    "replicates=8",
)
"""The paper's widths and AUC, and replicates that decide four claims."""
TABLE_1 = "scenarios/adp2sgd/table1_full.yaml"


class Size(NamedTuple):
    """How much is measured.

    Attributes:
        rows: Rows of a buffer.
        runs: Numbers of runs that are executed together.
        network: Of table 1.
        steps: Its steps.
        study: Entries of FedBCD's study.
        of_table_1: Entries of table 1's.
    """

    rows: int = 4096
    runs: tuple[int, ...] = (1, 64, 256, 1024)
    network: str = "resnet18"
    steps: int = 500
    study: tuple[str, ...] = WIDE
    of_table_1: tuple[str, ...] = ()


SMALL = (
    "problem.data={kind: synthetic_images, side: 32, channels: 3, num_samples: 640}",
    "algorithm.batch_size=2",
)
QUICK = Size(64, (1, 4), "shufflenet_v2", 4, ("stop.rounds=2", "replicates=1"), SMALL)
Row = tuple[Any, ...]


def clock() -> float:
    """Returns seconds: of this processor where it is the device, else of the wall."""
    on_cpu = jax.default_backend() == "cpu"
    return time.process_time() if on_cpu else time.perf_counter()


def best(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Returns the least time of some repeats, without the first, which compiles."""
    times = []
    for _ in range(repeats + 1):
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


def prepared(config: Scenario, seed: int = 1) -> Prepared:
    return simulation.prepare(Run(0, "", {}, 0, seed, config))


class BlockRows:
    """A buffer of rows on the device, and the state that goes through it.

    Args:
        runs: Runs of one structure; several are executed together.
        most: Rows of the buffer, at most.
    """

    def __init__(self, runs: list[Prepared], most: int = 4096) -> None:
        mode = "compiled" if len(runs) == 1 else "batched"
        first = runs[0]
        self.program: Program = simulation._program(runs, mode)
        fed = []
        for run in runs:
            feed = simulation._row_stream(run, most)
            feed.next(1)
            fed.append(feed.next(most))
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


def micros(rows: BlockRows) -> float:
    """Returns microseconds a row."""
    return best(rows) / rows.length * 1e6


def fedbcd(size: Size, out: Path, minutes: float) -> tuple[Row, list[Row]]:
    """FedBCD's MNIST-CNN at the paper's width: a study, continued if it is there."""
    folder = out / "fedbcd"
    entries = [part for entry in size.study for part in ("-s", entry)]
    command = [sys.executable, "-m", "stalesim"]
    begin = [*command, "run", FEDBCD, *entries, "-j", "1", "--no-plots", "-o", folder]
    there = (folder / "manifest.json").exists()
    done = [*command, "resume", folder, "-j", "1", "--no-plots"] if there else begin
    try:
        subprocess.run(done, timeout=minutes * 60, check=True)
        ended = "complete"
    except subprocess.TimeoutExpired:
        ended = f"stopped after {minutes:g} minutes; give the folder to the next loan"
    return ("study", "ended"), [(folder.name, ended)]


def table_1(size: Size) -> tuple[Row, list[Row]]:
    """A(DP)2SGD's ResNet-18 at the published setting: ms of a step, hours of a pair."""
    changes = ["evaluate.every.epochs=300", *size.of_table_1]
    runs = expand(read(Path(TABLE_1), changes))
    [run] = [each for each in runs if each.label == f"adp-small, name={size.network}"]
    rows = BlockRows([simulation.prepare(run)], size.steps)
    each = best(rows, 1) / rows.length
    pair = 2 * 300 * 50_000 / 256 * each / 3600
    return ("ms a step", "hours of a pair"), [(each * 1e3, pair)]


def against_loops(size: Size) -> tuple[Row, list[Row]]:
    """Rows against a loop of jitted calls and one of NumPy, us a row."""
    found: list[Row] = []
    for name, model in MODELS.items():
        run = prepared(setting(model, size.rows))
        engine = micros(rows := BlockRows([run]))
        numpy_s: float | str = ""
        if model is LINEAR:
            x = np.ascontiguousarray(np.asarray(run.problem.x)[:, :784])
            since = time.process_time()
            hand_written.asynchronous_sgd(
                x, np.asarray(run.problem.y), 10, rows.length, 32, 0.1, 1, 1024
            )
            numpy_s = (time.process_time() - since) / rows.length * 1e6
        by_calls = jitted(run, rows.length, 32) / rows.length * 1e6
        found.append((name, engine, by_calls, numpy_s))
    return ("", "engine", "jitted steps in Python", "NumPy on a CPU core"), found


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


def profile(size: Size, out: Path) -> tuple[Row, list[Row]]:
    """A profile of one buffer of rows, for TensorBoard or Perfetto."""
    rows = BlockRows([prepared(setting(LINEAR, size.rows))])
    jax.block_until_ready(rows())
    with jax.profiler.trace(str(out / "profile")):
        jax.block_until_ready(rows())
    files = [str(p.relative_to(out)) for p in (out / "profile").rglob("*.*")]
    return ("rows", "file"), [(rows.length, name) for name in files]


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
    names = ("fedbcd", "table_1", "rows", "together", "profile")
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--minutes", type=float, default=14, help="to begin parts in")
    parser.add_argument("--out", type=Path, default=Path("gpu"), help="folder")
    options = parser.parse_args()
    if unknown := {*options.tables} - {*names}:
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    size = QUICK if options.quick else Size()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    here = f"{jax.devices()[0].device_kind}, jax {jax.__version__}, "
    here += f"products in {device.products()}, {os.environ['XLA_FLAGS']}"
    start = time.monotonic()
    measures: dict[str, Callable[[Size], tuple[Row, list[Row]]]] = {
        "fedbcd": partial(fedbcd, out=out, minutes=options.minutes * 0.4),
        "table_1": table_1,
        "rows": against_loops,
        "together": together,
        "profile": partial(profile, out=out),
    }
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
