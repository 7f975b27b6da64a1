"""The cost of checksums, counts, hashes of inputs and syncs in a study of 64 runs.

    python benchmarks/safety.py [SCENARIO]      # default: VAFL's quickstart; a minute

The time is that spent inside the functions that exist for safety alone, by their own
clocks, over the time of the study: two runs of a study, one with and one without,
differ by more than what is to be measured. Bytes are those of files written once with
checksums and once without.
"""

import functools
import json
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stalesim.simulator import studies
from stalesim.simulator.files import inputs
from stalesim.simulator.files.study import disk, manifest, parts
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.studies import executors, origins, study_folder

RUNS = 64
SCENARIO = Path(__file__).parents[1] / "scenarios" / "quickstart_vafl.yaml"

spent: dict[str, float] = defaultdict(float)
calls: Counter[str] = Counter()
_within: list[str] = []


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose wall-clock time is counted, once if it is nested."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if _within:
            return function(*args, **options)
        _within.append(name)
        started = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            spent[name] += time.perf_counter() - started
            calls[name] += 1
            _within.pop()

    return called


class _Crc:
    """Stands for the module zlib in those that compute checksums."""

    crc32 = staticmethod(timed("CRC-32 of files and lines", zlib.crc32))


def instrument() -> None:
    """Puts clocks around everything that is there for safety alone."""
    for module in (parts, disk):
        module.zlib = _Crc  # pyright: ignore[reportAttributeAccessIssue]
    manifest._checksum = timed("SHA-256 of the manifest", manifest._checksum)
    inputs.collect = timed("SHA-256 of what is read", inputs.collect)
    origins.check_files = timed("SHA-256 of what is read", origins.check_files)
    disk.Disk.sync = timed("syncs", disk.Disk.sync)
    executors.replace = timed("notes of tasks", executors.replace)
    study_folder.StudyFolder._append = timed(
        "journal", study_folder.StudyFolder._append
    )
    executors.TaskCheckpoint.saved = timed(
        "states looked for", executors.TaskCheckpoint.saved
    )
    write = pq.write_table

    def once(table: pa.Table, sink: Any, **options: Any) -> float:
        started = time.thread_time()
        write(table, sink, **options)
        return time.thread_time() - started

    def twice(table: pa.Table, sink: Any, **options: Any) -> None:
        bare, other = options | {"write_page_checksum": False}, pa.BufferOutputStream()
        started = time.perf_counter()
        calls["page checksums"] += 1
        if calls["page checksums"] % 2:  # the second one finds everything in the cache
            without = once(table, other, **bare)
            aside = time.perf_counter() - started
            with_checksums = once(table, sink, **options)
        else:
            with_checksums = once(table, sink, **options)
            started = time.perf_counter()
            without = once(table, other, **bare)
            aside = time.perf_counter() - started
        spent["page checksums"] += with_checksums - without
        spent["(measuring)"] += aside
        sizes["parts"] += sink.tell()
        sizes["page checksums"] += sink.tell() - other.tell()

    pq.write_table = twice


sizes: Counter[str] = Counter()


def main(arguments: list[str]) -> None:
    """Runs the study and prints what safety took of its time and its bytes."""
    scenario = read(Path(arguments[0]) if arguments else SCENARIO)
    variants = max(1, len(scenario.variants))
    replicates = -(-RUNS // variants)
    tree = scenario.model_dump(mode="json") | {"replicates": replicates}
    with tempfile.TemporaryDirectory() as place:
        studies.simulate(tree | {"replicates": 1}, Path(place) / "warm")  # compiles
        instrument()
        started = time.perf_counter()
        study = studies.simulate(tree, Path(place) / "study")
        whole = time.perf_counter() - started - spent.pop("(measuring)")
        files = [path for path in study.folder.rglob("*") if path.is_file()]
        total = sum(path.stat().st_size for path in files)
        seals = json.dumps(study.manifest["parts"])
        rows = json.dumps([run.get("rows") for run in study.manifest["runs"]])
        sums = json.dumps(study.manifest["inputs"]) + study.manifest["checksum"]
    runs = len(study.manifest["runs"])
    sys.stdout.write(f"{runs} runs, {whole:.1f} s, {total / 1e6:.2f} MB\n\n")
    sys.stdout.write(
        "| what | calls | ms | % of time |\n| --- | ---: | ---: | ---: |\n"
    )
    costs = sorted(spent.items(), key=lambda cost: -cost[1])
    for name, seconds in [*costs, ("all", sum(spent.values()))]:
        line = f"| {name} | {calls[name] or ''} | {1000 * seconds:.1f} | "
        sys.stdout.write(f"{line}{100 * seconds / whole:.2f} |\n")
    kinds = {
        "page checksums": sizes["page checksums"],
        "seals of files": len(seals),
        "rows of runs": len(rows),
        "hashes": len(sums),
    }
    sys.stdout.write("\n| what | bytes | % of bytes |\n| --- | ---: | ---: |\n")
    for name, size in [*kinds.items(), ("all", sum(kinds.values()))]:
        sys.stdout.write(f"| {name} | {size} | {100 * size / total:.2f} |\n")


if __name__ == "__main__":
    main(sys.argv[1:])
