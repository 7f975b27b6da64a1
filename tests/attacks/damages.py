"""Every kind of file of a study, damaged in every way; and files that a study reads."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stalesim.simulator import studies
from stalesim.simulator.files.study import Study, StudyWarning, load
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies import running
from stalesim.simulator.studies.saved import record
from tests.attacks.cases import REFUSED, STOOD, UGLY, WRONG, Case
from tests.support import SGD, VAFL
from tests.unit.studies import test_damage as damage


def attacks(folder: Path) -> Iterator[Case]:
    """Yields damage of a study that has ended, one that runs, and a timeline."""
    whole = studies.simulate(validated(damage.LEARNING), folder / "ended")
    yield from _damaged(whole, folder / "a")
    end = running.StudyFolder.end
    try:
        running.StudyFolder.end = lambda self: load(self.path)
        studies.simulate(validated(damage.LEARNING), folder / "running")
    finally:
        running.StudyFolder.end = end
    yield from _damaged(load(folder / "running"), folder / "b")
    world = {key: VAFL[key] for key in ("name", "clients", "protocol", "stop")}
    world["clients"] = {**world["clients"], "number": 4}
    timeline = record(WorldScenario.model_validate(world), folder / "timeline")
    yield from _damaged(timeline, folder / "c")
    yield from _changed_data(folder)


def _damaged(study: Study, place: Path) -> Iterator[Case]:
    expected = damage.shown(study)
    for what in damage.damaged(study, place):
        how, file = what.split(" ", 1)
        kind = "a table" if "/" in file else file.split("-")[0]
        name = f"{how} of {kind}"
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found = damage.shown(load(place))
            except UserError as error:
                yield Case(name, UGLY if "\n" in str(error) else REFUSED)
                continue
            except Exception as error:  # what it is, is to be found
                yield Case(name, UGLY, f"{what}: {type(error).__name__}: {error}")
                continue
        told = any(issubclass(each.category, StudyWarning) for each in said)
        lost = any(
            entry["stop"] == "incomplete" for entry in load(place).manifest["runs"]
        )
        if not damage.differs(found, expected):
            yield Case(name, STOOD)
        else:
            yield Case(name, REFUSED if told or lost else WRONG, what)


def _changed_data(folder: Path) -> Iterator[Case]:
    """Yields studies that are extended or resumed after their data have changed."""
    rng = np.random.default_rng(1)
    times, data = folder / "e.csv", folder / "d.npz"

    def write(shift: float) -> None:
        x = rng.normal(size=(80, 5)) + shift
        np.savez(data, x=x, y=np.arange(80) % 2)
        pd.DataFrame({"seconds": 1 + shift + rng.random(50)}).to_csv(times, index=False)

    tree: dict[str, Any] = {
        "name": "changed",
        "problem": {**SGD["problem"], "data": {"kind": "npz", "path": str(data)}},
        "clients": {
            "compute": {"law": "empirical", "path": str(times), "column": "seconds"}
        },
        "protocol": {"kind": "asynchronous"},
        "algorithm": SGD["algorithm"],
        "stop": {"commits": 10},
        "evaluate": {"every": {"commits": 5}},
    }
    write(0)
    first = studies.simulate(validated(tree), folder / "changed")
    kept = {path: path.read_bytes() for path in (times, data)}
    for path in (data, times):
        write(3)
        for other in {times, data} - {path}:
            other.write_bytes(kept[other])
        for what, more in (("extended", {"replicates": 2}), ("resumed", {})):
            name = f"a study {what} after {path.suffix[1:]} data had changed"
            place = folder / f"{what}-{path.suffix[1:]}"
            shutil.copytree(first.folder, place)
            try:
                studies.simulate(validated(tree | more), place)
            except UserError as error:
                yield Case(name, REFUSED if path.name in str(error) else UGLY)
            else:
                yield Case(name, WRONG)
