"""Disks that are full or read-only, strange names, two writers, a folder that goes."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stalesim.simulator.files.study import Study, load
from tests.attacks.cases import (
    REFUSED,
    STOOD,
    UGLY,
    WRONG,
    Case,
    call,
    differs,
    finish,
    judged,
    scenario,
    start,
    ugly,
)

ALONE = ("-j", "1", "--no-plots")
SIZES = ("12k", "40k", "100k", "160k")
NAMES = (
    "a b",
    "ünï-日本",
    "line\nbreak",
    "$(touch x)",
    "-dash",
    "a'b\"c",
    "[b]",
    "x" * 200,
)
REFUSED_NAMES = ("x" * 256, "no\udcff-text")


@contextmanager
def _mounted(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    subprocess.run(options, check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def attacks(folder: Path) -> Iterator[Case]:
    """Yields the cases; those of full disks only where root may mount some."""
    path = scenario(folder)
    call("run", path, "-o", folder / "whole", *ALONE)
    whole = load(folder / "whole")
    if os.geteuid() == 0:
        for size in SIZES:
            yield _full(folder / f"disk-{size}", size, path, whole)
        yield _read_only(folder / "disk-ro", path)
    for name in NAMES:
        yield _named(folder / f"in-{NAMES.index(name)}", name, path, whole)
    for name in REFUSED_NAMES:
        yield judged(
            f"folder of {len(name)} characters",
            call("run", path, "-o", folder / name, *ALONE),
        )
    (folder / "file").write_text("mine")
    yield judged(
        "a file in place of the folder",
        call("run", path, "-o", folder / "file", *ALONE),
    )
    yield _gone(folder / "gone", path)
    yield _second(folder / "second", path, whole)


def _full(place: Path, size: str, path: Path, whole: Study) -> Case:
    what = f"a disk of {size}B that fills up, and is then enlarged"
    with _mounted(place, size):
        done = call("run", path, "-o", place / "s", *ALONE)
        if found := ugly(done):
            return Case(what, UGLY, found)
        note = done.err.strip()
        subprocess.run(["mount", "-o", "remount,size=64M", str(place)], check=True)
        again = call("run", path, "-o", place / "s", *ALONE)
        if again.status or ugly(again):
            return Case(what, UGLY, ugly(again) or again.err.strip())
        if found := differs(place / "s", whole):
            return Case(what, WRONG, found)
    return Case(what, REFUSED if done.status else STOOD, note)


def _read_only(place: Path, path: Path) -> Case:
    with _mounted(place, "1M"):
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        return judged("a read-only disk", call("run", path, "-o", place / "s", *ALONE))


def _named(place: Path, name: str, path: Path, whole: Study) -> Case:
    what = f"a folder called {name[:12]!r}"
    place.mkdir()
    done = call("run", path, f"--out={name}", *ALONE, cwd=place)
    if done.status or ugly(done):
        return judged(what, done)
    if [each.name for each in place.iterdir()] != [name]:
        return Case(what, WRONG, "it is called otherwise")
    found = differs(place / name, whole)
    return Case(what, WRONG if found else STOOD, found)


def _gone(place: Path, path: Path) -> Case:
    what = "a folder that is removed while the study runs"
    process = start("run", path, "-o", place, *ALONE, "-s", "replicates=40")
    until = time.monotonic() + 300
    while not any(each.stat().st_size for each in place.glob("journal-*")):
        if time.monotonic() > until:
            break
        time.sleep(0.1)
    shutil.rmtree(place, ignore_errors=True)
    done = finish(process)
    if done.status == 0:
        return Case(what, WRONG, "it ends as if nothing had been")
    return judged(what, done)


def _second(place: Path, path: Path, whole: Study) -> Case:
    what = "a second process that runs the same study"
    first = start("run", path, "-o", place, *ALONE)
    until = time.monotonic() + 300
    while not (place / "manifest.json").exists() and time.monotonic() < until:
        time.sleep(0.05)
    second = call("run", path, "-o", place, *ALONE)
    done = finish(first)
    if done.status or ugly(done) or ugly(second):
        return Case(what, UGLY, ugly(done) or ugly(second) or done.err)
    found = differs(place, whole)
    if found:
        return Case(what, WRONG, found)
    return Case(what, REFUSED if second.status else STOOD, second.err.strip())
