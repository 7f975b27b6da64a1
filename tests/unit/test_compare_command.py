"""`compare:` as a user meets it: run, killed, resumed, its tables and its page."""

from pathlib import Path

import pytest

from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.studies import compare, resume
from stalesim.simulator.studies.progress import StudyProgress
from tests.commands import invoked

SCENARIO = """\
name: tiny
seed: 1
replicates: 6
problem: {data: {kind: digits}, partition: {kind: iid, clients: 3}}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 40}
evaluate: {every: {commits: 10}, metrics: [test_accuracy]}
variants:
  whole: {}
  single: {algorithm: {batch: 1}}
compare:
  over: {algorithm.step_size: [0.000001, 0.3]}
  also: {single: {algorithm.step_size: {from: 0.05, to: 0.2, num: 2, scale: log}}}
  objective: test_accuracy=0.5
  budget: {trials: 12}
  replicates: 2
claims:
  - {higher: whole, than: single, says: "larger batches end higher"}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.mark.long
def test_a_killed_comparison_is_resumed_and_leaves_an_ordinary_study(
    scenario: Path, tmp_path: Path
) -> None:
    folder, whole = tmp_path / "study", tmp_path / "whole"

    def kill(now: StudyProgress) -> None:
        if now.ended > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(read(scenario), folder, progress=kill)
    assert load(folder).manifest["runs"] == []
    with pytest.raises(UserError, match=r"compare them by stalesim run"):
        resume(folder)
    done = invoked("resume", folder, "--no-plots", "-j", 1)
    at_once = compare(read(scenario), whole)
    study = load(folder)
    assert study.complete
    assert study.manifest["scenario"] == at_once.manifest["scenario"]
    columns = ["run", "test_accuracy"]
    assert study.table("evaluations")[columns].equals(
        at_once.table("evaluations")[columns]
    )
    assert "each variant at its own best" in done.stdout
    assert "larger batches end higher" in done.stdout
    invoked("run", scenario, "-o", folder, "--no-plots", "-j", 1)
    assert load(folder).manifest["session"] > study.manifest["session"]
    for file, words in (("t.md", "at best"), ("t.tex", "each variant at its own")):
        invoked("tables", folder, "-o", tmp_path / file)
        assert words in (tmp_path / file).read_text(encoding="utf-8")
    invoked("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Each variant at its own best" in page


def test_a_plan_shows_the_grids(scenario: Path) -> None:
    done = invoked("run", scenario, "--dry-run")
    # Two step sizes of each variant with two replicates.
    assert "8 runs in" in done.stdout
    assert "these are the grids of the comparison" in done.stdout


def test_looks_are_refused(scenario: Path) -> None:
    with pytest.raises(UserError, match="--until-decided must be left out with comp"):
        invoked("run", scenario, "--until-decided")
