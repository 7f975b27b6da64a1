"""`stalesim tune` as a user meets it: its last line, its study, its mistakes."""

import re
import sys
from pathlib import Path

import pytest

from stalesim.simulator.cli import tuning
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import UserError
from tests.commands import invoked

SCENARIO = """\
name: tiny
seed: 1
replicates: 4
problem: {data: {kind: digits}, partition: {kind: iid, clients: 3}}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 40}
evaluate: {every: {commits: 10}, metrics: [test_loss, test_accuracy]}
"""
LAST = re.compile(
    r"Best of 2: algorithm\.learning_rate=0\.3: test_loss at 40 commits: [0-9.]+ "
    r"\(95 % from [0-9.]+ to [0-9.]+, 4 new replicates\); 12 runs"
)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.mark.long
def test_a_search_ends_with_a_line_and_leaves_a_study(
    scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    over = ("--over", "algorithm.step_size=[0.000001, 0.3]", "--trials", 3)
    options = (*over, "--objective", "test_loss@40commits", "-o", folder, "-j", 1)
    done = invoked("tune", scenario, *options, "--no-plots")
    last = done.stdout.splitlines()[-1]
    assert LAST.fullmatch(last), last
    study = load(folder)
    assert study.complete
    assert study.manifest["scenario"]["tune"]["objective"] == "test_loss@40commits"
    again = invoked("resume", folder, "--no-plots", "-j", 1)
    assert again.stdout.splitlines()[-1] == last
    invoked("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "as the sweep has them" in page


def test_a_scenario_with_a_search_is_not_run_as_it_is(scenario: Path) -> None:
    plan = "tune={over: {algorithm.step_size: [0.1, 0.3]}}"
    for more in ((), ("--dry-run",)):
        with pytest.raises(UserError, match="search by stalesim tune"):
            invoked("run", scenario, "-s", plan, *more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=1:2", ("a.b", {"from": 1, "to": 2})),
        ("a.b=log:1e-3:1", ("a.b", {"from": 0.001, "to": 1, "scale": "log"})),
        ("a.b=[1, x]", ("a.b", [1, "x"])),
        (
            "a.b={from: 1, to: 8, whole: true}",
            ("a.b", {"from": 1, "to": 8} | {"whole": True}),
        ),
    ],
)
def test_what_is_searched_is_read(text: str, expected: object) -> None:
    assert tuning.searched(text) == expected


@pytest.mark.parametrize("text", ["a.b", "a.b=", "=1:2:3", "a.b=1", "a.b=1:x", "=[1]"])
def test_what_is_searched_must_have_a_form(text: str) -> None:
    with pytest.raises(UserError, match=r"must be KEY=FROM:TO, KEY=log:FROM:TO or KEY"):
        tuning.searched(text)


def test_without_optuna_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stalesim.simulator.scenario.tuning import Tune
    from stalesim.simulator.studies.tuning import Proposals

    monkeypatch.setitem(sys.modules, "optuna", None)
    told = pytest.raises(UserError, match=r'pip install "stalesim\[tune\]"')
    with told:  # before the file is looked for, and what else is missing told
        tuning.tune(tmp_path / "none.yaml")
    with told:
        Proposals(Tune.model_validate({"over": {"a": [1, 2]}}), 1)
