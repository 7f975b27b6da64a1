"""Parts that others bring: found, or refused in one line that says what to do."""

import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from stalesim.simulator.catalogue.algorithms.federated.part import Sgd
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.kernel import Kernel
from stalesim.simulator.files import inputs
from stalesim.simulator.parts import catalogue, plugins
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.errors import DataError, UserError
from stalesim.simulator.parts.own_code import Content
from stalesim.simulator.parts.plugins import VARIABLE, Plugins
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.world.recorders.recorder import Recorder
from stalesim.simulator.world.world import World
from tests.support import table
from tests.unit.scenario.mistakes import TABLES

LAW = """
from typing import Literal
from stalesim.simulator.scenario.claims import Claim
from stalesim.simulator.parts.base import Part
from stalesim.simulator.world.laws.base import Law
from stalesim.simulator.parts.metrics import Metric
from stalesim.simulator.world.protocol import Protocol
from stalesim.simulator.problem.partition import Horizontal

class Nap(Law):
    law: Literal["nap"] = "nap"
    seconds: float = 1

class Plain(Part):
    kind: Literal["plain"] = "plain"

class Untagged(Law):
    kind: Literal["plain"] = "plain"

class Nameless(Law):
    law: str = "nap"

class Digits(Horizontal):
    kind: Literal["iid"] = "iid"

class Odd(Protocol):
    kind: Literal["odd"] = "odd"

class Unjudged(Claim):
    named = "unjudged"
    unjudged: str

def make(config, population):
    return None
"""
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module that only this test knows; returns its name."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    made = []

    def write(end: str, *, text: str = LAW) -> str:
        name = f"brings_{re.sub(r'[^a-z0-9]', '_', tmp_path.name)}_{len(made)}"
        made.append(name)
        (tmp_path / f"{name}.py").write_text(text + end + "\n", encoding="utf-8")
        monkeypatch.setenv(VARIABLE, name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def everything() -> Plugins:
    return catalogue._plugins()


def test_a_module_brings_what_it_says(write: Write) -> None:
    name = write('STALESIM = {"laws": (Nap,)}')
    found = everything()
    assert {kind: len(entries) for kind, entries in found.items() if entries} == {
        "laws": 1
    }
    ((part, source),) = found["laws"].items()
    assert (tag(part), source) == ("nap", name)


def test_a_file_is_a_module_from_any_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write('STALESIM = {"laws": [Nap]}')
    monkeypatch.setattr(sys, "path", sys.path[:-1])
    monkeypatch.setenv(VARIABLE, str(tmp_path / f"{name}.py"))
    assert [*everything()["laws"].values()] == [name]


MISTAKES: dict[str, list[str]] = table(__file__)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(write: Write, mistake: str) -> None:
    end, said = MISTAKES[mistake]
    name = write(end)
    with pytest.raises(UserError) as caught:
        everything()
    message = str(caught.value)
    assert said in message
    assert name in message
    assert "\n" not in message


def test_a_module_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no_such_module_here")
    with pytest.raises(UserError, match="there is no module 'no_such_module_here'"):
        everything()
    monkeypatch.setenv(VARIABLE, "/no/such/file.py")
    with pytest.raises(UserError, match=r"no module '/no/such/file.py'; check the"):
        everything()


def test_an_import_that_is_missing_in_a_module_is_not_the_module(write: Write) -> None:
    name = write("import no_such_module_here")
    with pytest.raises(UserError, match="ModuleNotFoundError: No module named") as told:
        everything()
    assert f"({name}.py:" in str(told.value)


def test_a_file_with_the_name_of_another_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "json.py"
    path.write_text("STALESIM = {}", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(UserError, match=r"a new name, got 'json', .*rename the"):
        everything()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{module}:missing", "must be importable, got AttributeError"),
        ("no_such_module_here:x", "must be importable, got ModuleNotFoundError"),
        (
            "{module}:make",
            "a subclass of stalesim.simulator.world.laws.base.Law",
        ),
        ("{module}:Nap", None),
    ],
)
def test_entry_points_of_packages(
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    said: str | None,
) -> None:
    module = write("")
    monkeypatch.delenv(VARIABLE)
    info = tmp_path / "napping-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: napping\nVersion: 1\n")
    point = value.format(module=module)
    (info / "entry_points.txt").write_text(f"[stalesim.laws]\nnap = {point}\n")
    if said is None:
        assert [*everything()["laws"].values()] == ["napping"]
        return
    with pytest.raises(UserError, match=r"point .nap. of stalesim\.laws") as told:
        everything()
    assert said in str(told.value)
    assert "'napping'" in str(told.value)


def test_bringing_after_a_scenario_was_read_is_too_late(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write('STALESIM = {"laws": ()}')
    monkeypatch.delenv(VARIABLE)
    assert catalogue.parts("laws")  # as every scenario does
    with pytest.raises(UserError, match="before the first scenario is read; restart"):
        catalogue.register(name)
    assert VARIABLE not in os.environ


def test_bringing_is_remembered_for_other_processes_unless_it_fails(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = write('STALESIM = {"laws": ()}'), write("STALESIM = 1")
    monkeypatch.setenv(VARIABLE, good)
    catalogue.registered.cache_clear()
    with pytest.raises(UserError, match="must have a mapping STALESIM"):
        catalogue.register(bad)
    assert os.environ[VARIABLE] == good
    catalogue.register(good)
    assert os.environ[VARIABLE] == good
    other = write('STALESIM = {"laws": ()}')
    monkeypatch.setenv(VARIABLE, good)
    catalogue.register(other)
    assert os.environ[VARIABLE] == os.pathsep.join([good, other])
    catalogue.registered.cache_clear()


def test_other_code_than_a_study_was_planned_with_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    then = Content("law.py", "0", 0, {"mean": ("mean.py", "1")})
    read = inputs.Inputs("", "", {}, {}, {"law": then}, {})
    moved = then._replace(at="here/law.py", imports={"mean": ("here/mean.py", "1")})
    others = then._replace(sha256="2"), then._replace(imports={"mean": ("", "2")})
    for here, same in ((moved, True), *((other, False) for other in others)):
        monkeypatch.setitem(plugins._sources, "law", here)
        refused = pytest.raises(DataError, match="must stay as it is while the study")
        with nullcontext() if same else refused, inputs.held(read):
            pass


def test_what_is_missing_is_said_in_a_scenario_as_before() -> None:
    text = "problem: {data: {kind: digit}, partition: {kind: iid, clients: 2}}\n"
    with pytest.raises(UserError, match="got 'digit'; did you mean 'digits'"):
        loads(text, "a.yaml")


def test_a_row_wider_than_the_protocol_says_is_refused() -> None:
    world = World(Clients(compute=Constant(value=1)), num_clients=2, seed=0)
    recorder = Recorder(world, width=1)
    for client in (0, 1):
        recorder.read(client)
    recorder.commit((0, 1))
    with pytest.raises(UserError, match=r"got 2; .* Cadence\(2, in_flight"):
        recorder.take(final=True)


def test_an_algorithm_that_reveals_nothing_is_not_probed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(Kernel):
        def init(self, problem: object, key: object) -> None: ...
        def step(self, problem: object, state: object, event: object) -> None: ...
        def read_out(self, state: object) -> None: ...

    text = TABLES["scenario methods"]["good"] + "probe: {every: 5}\n"
    (run,) = expand(loads(text, "probed.yaml"))
    monkeypatch.setattr(Sgd, "make", lambda *_: Silent())
    with pytest.raises(UserError, match="'sgd', which does not reveal its messages"):
        simulation.prepare(run)
