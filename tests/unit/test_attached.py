"""Extras: found because their folder is there, and counted where a study uses them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stalesim.analysis.worlds import report_of
from stalesim.simulator import extras as package
from stalesim.simulator.files import inputs
from stalesim.simulator.files.study import manifest
from stalesim.simulator.parts import attached, catalogue
from stalesim.simulator.parts.errors import ScenarioError, StudyError
from stalesim.simulator.scenario.reading import loads, loads_any

LAW = '''
"""A law of an extra."""
from typing import Literal

from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.scenario.setting import Varied


class Ticks(Varied):
    """A world of ticks."""

    ticks: int
    record: str = "everything"


class Twice(Constant):
    """Twice as long."""

    law: Literal["twice"] = "twice"
'''
EXTRA = '''
"""An extra with a law and a world."""
from stalesim.simulator.parts.attached import Extra, ExtraWorld


class World(ExtraWorld):
    kind = "ticks"
    entries = ("ticks",)

    def scenario(self):
        from .twice import Ticks

        return Ticks

    def record(self): ...

    def report(self):
        from . import twice

        return twice


EXTRA = Extra(worlds=(World(),))
'''


CACHED = (
    *(attached.extras, attached.listed, catalogue.own),
    *(manifest.code, manifest._version),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an extra with a law and a world, the only one."""
    folder = tmp_path / "simulator" / "extras" / "slow"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(EXTRA)
    (folder / "twice.py").write_text(LAW)
    home = f"{attached.PACKAGE}.slow.twice"
    row = f"laws,,{home}:Twice,\nmoods,*,{home}:Twice,\n"
    (folder / attached.LISTED).write_text(row)
    monkeypatch.setattr(package, "__path__", [str(folder.parent)])
    monkeypatch.setattr(attached, "FOLDER", folder.parent)
    monkeypatch.setattr(manifest, "PACKAGE", folder.parents[1])
    for each in CACHED:
        each.cache_clear()
    yield folder
    for name in [
        name for name in sys.modules if name.startswith(f"{attached.PACKAGE}.slow")
    ]:
        del sys.modules[name]
    monkeypatch.undo()
    for each in CACHED:
        each.cache_clear()


def test_a_folder_adds_its_parts(folder: Path) -> None:
    laws = {part.__name__ for part in catalogue.own("laws")}
    assert {"Twice", "Constant"} <= laws
    table = folder / attached.LISTED
    assert table in attached.tables()
    twice, base = map(catalogue.completed, attached.read(table))
    assert twice[:2] == ("laws", "twice")
    assert base[:2] == ("moods", "*")
    assert catalogue.own("moods") == ()


def test_a_world_is_known_by_its_entry_and_its_kind(folder: Path) -> None:
    world = loads_any("name: x\nticks: 3", "x.yaml")
    assert (type(world).__name__, world.ticks) == ("Ticks", 3)
    with pytest.raises(ScenarioError, match="play its world alone"):
        loads("name: x\nticks: 3", "x.yaml")
    assert report_of({"kind": "ticks"}).__file__ == str(folder / "twice.py")
    with pytest.raises(StudyError, match="one of timeline, ticks, got 'tocks'; inst"):
        report_of({"kind": "tocks"})


def test_a_study_counts_the_code_of_the_extras_that_it_uses(folder: Path) -> None:
    (twice,) = [part for part in catalogue.own("laws") if part.__name__ == "Twice"]
    constant = next(p for p in catalogue.own("laws") if p.__name__ == "Constant")
    assert inputs.collect([constant(value=1)]).libraries == ()
    used = inputs.collect([twice(value=1)]).libraries
    assert used == ("extras.slow",)
    before = manifest.program(used)
    (folder / "twice.py").write_text(f"{LAW}# a comment\n")
    manifest.code.cache_clear()
    manifest._version.cache_clear()
    after = manifest.program(used)
    assert after["extras.slow"] != before["extras.slow"]
    assert after["code"] == before["code"], "no other study is refused"


def test_the_core_counts_without_extras(folder: Path) -> None:
    before = manifest.code(manifest.PACKAGE)
    (folder.parents[1] / "law.py").write_text("")
    manifest.code.cache_clear()
    assert manifest.code(manifest.PACKAGE) != before
