"""Hashes of all that short runs write: nothing of it changes unless that is meant.

Every shipped scenario is pinned by up to three of its variants and all their
timelines, every pair of protocol and algorithm that ships in none by a small run.
Data that are not to be had everywhere are drawn in the same shape (`DRAWN`).

    python -m tests.golden.pins                  # compares what is pinned
    python -m tests.golden.pins compare NAME...  # some of it
    python -m tests.golden.pins write [NAME...]  # pins anew; say why in the commit

Whole numbers and text are equal on every machine; other numbers only where machine and
libraries are those that wrote a case's pins, so their hashes are compared there alone.
"""

import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from stalesim.simulator.parts.errors import nearest
from tests.golden.every import CASES

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("pins.json")
FILES = {
    path.relative_to(ROOT / "scenarios").with_suffix("").as_posix(): path
    for path in sorted((ROOT / "scenarios").rglob("*.yaml"))
}
NAMES = [*FILES, *CASES]
COMMITS, EVERY = 12, 6
STEPS = "steps"
"""What worlds other than those of clients stop by, in place of commits."""
MOST = 3
"""Variants of a file that are run; the timelines of all are pinned."""
HEAVY = ("adp2sgd/swb_full", "adp2sgd/table1_full")
"""Files that are only played: a commit of theirs takes minutes."""
TABLE, IMAGES, SERIES = (f"synthetic_{one}" for one in ("table", "images", "series"))
FRAMES = {"kind": SERIES, "labels": "frame", "frames": 21, "num_samples": 2600}
DRAWN: dict[str, dict[str, Any]] = {
    "cifar10": {"kind": IMAGES, "side": 32, "channels": 3, "num_samples": 5200},
    "credit": {"kind": TABLE, "views": {"payments": 18, "profile": 15}}
    | {"num_samples": 5000},
    "fashion_mnist": {"kind": IMAGES, "side": 28, "num_samples": 5000},
    "mfeat": {"kind": TABLE, "num_classes": 10}
    | {"views": {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}},
    "mimic": {"kind": TABLE, "views": {f"variable{v}": 42 for v in range(17)}},
    "mimic hourly": {"kind": SERIES, "frames": 48, "features": 34},
    "modelnet40": {"kind": IMAGES, "views": 12, "num_classes": 40}
    | {"num_samples": 2500},
    "nus_wide": {"kind": TABLE, "views": {"image": 80, "tag": 120}}
    | {"num_samples": 6000},
    "parkinson": {"kind": TABLE, "views": {"block": 753}, "num_samples": 756},
    "physionet2012 hourly": {"kind": SERIES, "frames": 48, "features": 81},
    "speech": {**FRAMES, "features": 260, "num_classes": 64},
    "spoken_digits": {**FRAMES, "features": 120, "num_classes": 10},
    "usps": {"kind": IMAGES, "side": 16},
}
"""Drawn data in place of each set whose files must be there, and its features."""
KEPT = ("scale", "split_seed", "test_fraction", "limit", "classes")
"""Entries of the data that are kept where they are drawn."""
REGISTERS = ("read_slot", "write_slot")
"""Columns that are not pinned: players may number registers otherwise."""
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "simpy", "equinox", "optax")


def machine() -> str:
    """Returns what the last bits of numbers depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        said = {key.strip(): text for key, _, text in (x.partition(":") for x in lines)}
        # Machines of one name differ in it, and XLA compiles for what there is.
        widest = "AVX-512" if "avx512f" in said.get("flags", "") else "no AVX-512"
        cpu = f"{said.get('model name', cpu).strip()}, {widest}"
    libraries = [f"{name} {version(name)}" for name in LIBRARIES]
    return ", ".join([cpu.strip(), platform.python_version(), *libraries])


def found(name: str) -> dict[str, Any]:
    """Returns what a case writes: hashes of each run's tables, as `_table` has them."""
    pins: dict[str, Any] = {}
    for label, scenario, learns in _short(name):
        try:
            pins[label] = _run(scenario, learns=learns)
        except Exception as error:  # some do not come through between processes
            raise RuntimeError(f"{name}, {label}: {error}") from None
    return pins


def _short(name: str) -> Iterator[tuple[str, Any, bool]]:
    """Yields runs with few commits, and whether each is to learn or only to be played.

    All of them are named by variant; of a sweep, the first point is taken.
    """
    from stalesim.simulator.scenario.reading import read_any
    from stalesim.simulator.scenario.scenario import Scenario
    from stalesim.simulator.scenario.setting import BaseScenario
    from stalesim.simulator.scenario.study import expand

    if name in CASES:
        yield "base", Scenario.model_validate(CASES[name]), True
        return
    scenario = read_any(FILES[name])
    runs = expand(scenario.model_copy(update={"replicates": 1}))
    first = {run.variant: run for run in reversed(runs)}
    kept = [first[variant] for variant in scenario.variants or ["base"]]
    step = max(1, -(-len(kept) // MOST))
    for index, run in enumerate(kept):
        tree = run.scenario.model_dump(mode="json")
        of_clients = isinstance(scenario, BaseScenario)
        tree["stop"] = {"commits" if of_clients else STEPS: COMMITS}
        tree["seed"] = run.seed
        learns = "problem" in tree and name not in HEAVY
        if "problem" in tree:
            tree["problem"]["data"] = drawn(tree["problem"]["data"])
            tree["evaluate"]["every"] = {"commits": EVERY}
            tree["claims"] = []
        made = type(run.scenario).model_validate(tree)
        yield run.variant, made, learns and index % step == 0


def drawn(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the entry of data that are here everywhere, in place of others."""
    kind = " ".join([data["kind"]] + ["hourly"] * (data.get("features") == "hourly"))
    if kind not in DRAWN:
        return data
    return {key: data[key] for key in KEPT if key in data} | DRAWN[kind]


def _run(scenario: Any, *, learns: bool) -> dict[str, Any]:
    from stalesim.simulator.cli.runs import recorder_of
    from stalesim.simulator.studies import simulate

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study"
        play = simulate if learns else recorder_of(scenario)
        study = play(scenario, path)
        (run,) = study.manifest["runs"]
        pins = {"keys": _hash(json.dumps(run["scenario"], sort_keys=True))}
        pins |= {k: run[k] for k in ("stop", "timeline", "dataset") if k in run}
        for name in sorted(study.manifest["parts"]):
            pins[name] = _table(study.arrow(name))
        return pins


def _table(table: Any) -> str:
    """Returns a hash of the columns that are exact, and one of the others after a ~."""
    hashes: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for name in table.column_names:
        if name in REGISTERS:
            continue
        column = table[name].combine_chunks()
        inner = getattr(column.type, "value_type", column.type)  # of a list
        exact = not pa.types.is_floating(inner)
        hashes[exact][name] = _hash(json.dumps(column.to_pylist()))
    parts = (json.dumps(hashes[exact], sort_keys=True) for exact in (True, False))
    return "~".join(map(_hash, parts))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differences(name: str, *, everything: bool) -> list[str]:
    """Returns where a case is not as it is pinned.

    Args:
        name: of the case.
        everything: also numbers that are not whole.
    """
    return list(compared(name, pinned(name), found(name), everything=everything))


def compared(place: str, old: Any, new: Any, *, everything: bool) -> Iterator[str]:
    """Yields the differences of two trees of pins, each with its place."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from compared(
                f"{place}/{key}", old.get(key), new.get(key), everything=everything
            )
    elif _kept(old, everything) != _kept(new, everything):
        yield f"{place}: pinned {old}, now {new}"


def _kept(pin: Any, everything: bool) -> Any:
    """Returns what is compared of a pin: all of it, or what is exact."""
    return pin.split("~")[0] if isinstance(pin, str) and not everything else pin


def pinned(name: str) -> dict[str, Any]:
    """Returns the pins of a case; none of one that is new."""
    return _pinned()["cases"].get(name, {})


def _pinned() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def is_machine(name: str) -> bool:
    """Returns whether this machine is the one that wrote the pins of a case."""
    pins = _pinned()
    return pins["written_elsewhere"].get(name, pins["machine"]) == machine()


def _all(function: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    names = list(names)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        try:
            yield from zip(names, pool.map(function, names), strict=True)
        except Exception:
            pool.shutdown(cancel_futures=True)
            raise


def _exactly(name: str) -> list[str]:
    return differences(name, everything=is_machine(name))


def main(order: str = "compare", *names: str) -> int:
    """Writes or compares pins; returns the number of differences."""
    chosen = names or NAMES
    if unknown := [name for name in chosen if name not in NAMES]:
        near = nearest(unknown[0], NAMES)
        known = f"did you mean {near!r}?" if near else "they are files in scenarios/"
        raise SystemExit(f"NAME must be that of a case, got {unknown[0]!r}; {known}")
    if order not in ("compare", "write"):
        raise SystemExit(f"pins must be asked to compare or write, got {order!r}")
    if order == "write":
        new = {"cases": {}, "machine": machine(), "written_elsewhere": {}}
        pins = _pinned() if FILE.exists() and names else new
        for name, made in _all(found, chosen):
            pins["cases"][name] = made
            pins["written_elsewhere"].pop(name, None)
            if pins["machine"] != machine():
                pins["written_elsewhere"][name] = machine()
            text = json.dumps(pins, indent=0, sort_keys=True)
            FILE.write_text(text + "\n", encoding="utf-8")
            print(name, flush=True)
        return 0
    count = 0
    for name, lines in _all(_exactly, chosen):
        count += len(lines)
        same = "as pinned" if is_machine(name) else "as pinned, by another machine"
        print(name, same if not lines else "\n  ".join(["", *lines]), flush=True)
    print(f"{count} differences")
    return count


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
