"""The same study under settings that must not matter."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from stalesim.simulator.files.study import load
from tests.attacks.cases import STOOD, UGLY, WRONG, Case, call, differs, scenario, ugly

ALONE = ("-j", "1", "--no-plots")
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def attacks(folder: Path) -> Iterator[Case]:
    """Yields the cases, each a study that must be the first one to the bit."""
    path = scenario(folder)
    first = call("run", path, "-o", folder / "whole", *ALONE)
    assert first.status == 0, first
    whole = load(folder / "whole")
    cases = {
        "once more": ((), {}),
        "two processes": (("-j", "2"), {}),
        "three processes": (("-j", "3"), {}),
        "an empty cache": (
            (),
            {"STALESIM_CACHE": str(folder / "cache"), "JAX_COMPILATION_CACHE_DIR": ""},
        ),
        "one thread of XLA": ((), {"XLA_FLAGS": ONE_THREAD}),
        "PYTHONHASHSEED 1": ((), {"PYTHONHASHSEED": "1"}),
        "PYTHONHASHSEED 4242": ((), {"PYTHONHASHSEED": "4242"}),
        "a state kept every 10 ms": (("--checkpoint", "0.01"), {}),
        "no state kept": (("--checkpoint", "0"), {}),
        "another time zone and language": ((), {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    }
    for what, (options, also) in cases.items():
        place = folder / what.replace(" ", "-")
        done = call("run", path, "-o", place, *ALONE, *options, also=also)
        yield _compared(what, place, whole, done.status != 0 or ugly(done))
    place = folder / "extended"
    call("run", path, "-o", place, *ALONE, "-s", "replicates=1")
    done = call("run", path, "-o", place, *ALONE)
    yield _compared("extended by a replicate", place, whole, done.status)
    place = folder / "moved"
    call("run", path, "-o", place, *ALONE, "-s", "replicates=1")
    shutil.move(place, folder / "moved-away")
    (folder / "elsewhere").mkdir()
    place = folder / "moved-away"
    done = call("run", path, "-o", place, *ALONE, cwd=folder / "elsewhere")
    yield _compared("moved and extended from elsewhere", place, whole, done.status)


def _compared(what: str, place: Path, whole: object, failed: object) -> Case:
    if failed:
        return Case(what, UGLY, str(failed))
    found = differs(place, whole)  # pyright: ignore[reportArgumentType]
    return Case(what, WRONG if found else STOOD, found)
