"""The command line as a user meets it: real processes, exit codes, interrupted runs."""

import json
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from stalesim.simulator.cli import commands
from stalesim.simulator.cli.runs import _begin_processes
from stalesim.simulator.engine import processes
from stalesim.simulator.files.study import load
from stalesim.simulator.parts import catalogue
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.errors import ScenarioError, StudyError, UserError
from tests.commands import ENVIRONMENT, each, invoked, stalesim, started, wait_for

SCENARIO = """\
name: tiny
seed: 1
replicates: 3
problem:
  data: {kind: breast_cancer, scale: standard}
  partition: {kind: vertical, parties: 3}
clients:
  compute: {law: poisson, mu: "2*m", scale: "1/(2*M)", shift: 1.0e-6}
protocol: {kind: asynchronous}
algorithm: {kind: vafl, step_size: 0.1, batch: 8, upload: batch}
stop: {time: 20}
evaluate: {every: {time: 2}}
engine: {mode: compiled}
variants:
  async: {}
  sync: {protocol: {kind: synchronous}}
claims:
  - {faster: async, than: sync, to: {test_accuracy: 0.8}, says: "as in figure 2"}
"""
MAIN = "from stalesim.simulator.cli import main; main()"
NARROW = ENVIRONMENT | {"COLUMNS": "80"}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_run_writes_a_study_with_figures_and_a_closing_table(
    scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    done = stalesim("run", scenario, "-o", folder, "-j", 2, env=NARROW)
    assert done.returncode == 0, done.stderr
    words = "async", "sync", "final", "staleness", "MB", "figures in figures/", "Next:"
    assert all(word in done.stdout for word in words)
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(len(line) for line in lines if str(folder) not in line) <= 80
    study = load(folder)
    assert study.complete
    assert len(study.manifest["runs"]) == 6
    assert {run["stop"] for run in study.manifest["runs"]} == {"time"}
    assert set(study.table("evaluations")["run"]) == set(range(6))
    assert (folder / "figures" / "convergence-time.png").stat().st_size > 10_000
    assert "as in figure 2" in invoked("check", folder).stdout
    run = ("run", scenario, "-o", folder, "-j", 1, "--no-plots")
    assert invoked(*run).exit_code == 0
    with pytest.raises(
        StudyError, match=r"run 'async' differs: algorithm\.batch was 8 and is 9"
    ):
        invoked(*run, "-s", "algorithm.batch=9")
    with pytest.raises(ScenarioError):
        invoked(*run, "--overwrite", "-s", "seed=x")
    assert len(load(folder).manifest["runs"]) == 6
    one = ("-s", "algorithm.batch=9", "-s", "replicates=1")
    assert invoked(*run, "--overwrite", *one).exit_code == 0
    assert len(load(folder).manifest["runs"]) == 2
    assert not (folder / "figures").exists()


def test_a_study_that_is_there_is_not_run_again(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("-s", "replicates=1", "-j", 1, "--no-plots")

    def run(*more: str) -> str:
        return invoked("run", scenario, *options, *more).stdout

    assert "The study is in" not in run()
    tables = sorted((tmp_path / "runs/tiny/evaluations").iterdir())
    before = [path.stat().st_mtime_ns for path in tables]
    again = run()
    assert "The study is in runs/tiny; completed runs there are skipped" in again
    assert "Study: runs/tiny" in again
    assert "Study: runs/tiny-2" in run("-s", "seed=2")
    assert [path.stat().st_mtime_ns for path in tables] == before


LOSS_OF_OTHER_DATA = ("-s", "problem.loss=sigmoid", "-s", "problem.data.kind=digits")


def test_a_users_mistake_is_one_line_and_exit_2(scenario: Path) -> None:
    calls: tuple[tuple[object, ...], ...] = (
        ("run", scenario, "-s", "sede=1"),
        ("run", scenario, "-s", "algorithm.batch=456"),
        ("run", scenario, "-s", "problem.partition.parties=31"),
        ("run", scenario, "-s", "problem.data={kind: csv, path: no.csv, label: y}"),
        ("run", scenario, *LOSS_OF_OTHER_DATA),
        ("run", scenario.parent / "no.yaml"),
        ("plot", scenario.parent),
        ("check", scenario.parent / "nothing"),
    )
    done = each(*calls)
    assert done.stdout.count("ended with 2\n") == len(calls), done.stdout
    told = [line for line in done.stderr.splitlines() if "cannot decide" not in line]
    assert len(told) == len(calls), done.stderr
    assert all(line.startswith("stalesim: ") for line in told), done.stderr


@pytest.mark.long
def test_replicates_are_added_until_claims_are_decided(
    scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "grown"
    run = ("run", scenario, "-o", folder)
    assert invoked(*run, "--max-replicates", 6, "--no-plots", "-j", 2).exit_code == 0
    said = load(folder).manifest["scenario"]
    assert (said["replicates"], said["looks"]) == (6, [6])
    shown = " ".join(invoked("check", folder).stdout.split())
    assert "interim analysis 1 at 6 of at most 6" in shown
    for options, why in (
        (("--max-replicates", 9), "must keep to its interim analyses at 6"),
        (("--until-decided", "-s", "claims=[]"), "must have claims to run until"),
    ):
        with pytest.raises(StudyError, match=why) as bad:
            invoked(*run, *options)
        assert "\n" not in str(bad.value)
    dry = invoked("run", scenario, "--until-decided", "--dry-run")
    assert "40 runs in 40 batches; nothing was run" in dry.stdout


def test_processes_start_while_a_scenario_is_read_also_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[str] = []
    alone = tmp_path / "alone.yaml"
    alone.write_text("name: alone\n", encoding="utf-8")
    for file in ("quickstart", "scenarios/quickstart.yaml", str(alone)):
        monkeypatch.setattr(processes, "begin", lambda file=file: begun.append(file))
        _begin_processes(Path(file))
    assert begun == ["quickstart", "scenarios/quickstart.yaml"]


def test_dry_run_list_and_schema(scenario: Path) -> None:
    dry = invoked("run", scenario, "--dry-run")
    assert "6 runs in 6 batches; nothing was run" in dry.stdout
    assert "t_synchronous" in invoked("list").stdout
    assert "Every client begins available" in invoked("list", "on_off").stdout
    assert "max_staleness" in invoked("list", "bounded").stdout
    words = {"digits": "minmax` (or `unit`)", "synchronous": "discard` (or `reject`)"}
    for part, both in words.items():
        assert both in " ".join(invoked("list", part).stdout.split())
    chain = invoked("list", "fed_avg").stdout.partition("Its chain")[2]
    assert "client_weighting: samples" in chain
    assert "    learning_rate: 1.0" in chain
    assert "s, loc = 0, scale = 1 (or mean, if" in invoked("list", "lognorm").stdout
    assert "second_decay" in invoked("list", "momentum").stdout
    assert "--from quickstart" in invoked("list", "quickstart").stdout
    with pytest.raises(UserError, match="a scenario has the key clients"):
        invoked("list", "crashes")
    assert {tuple(row[:2]) for row in catalogue.listing()} == {
        (kind, tag(part)) for kind in catalogue.BASES for part in catalogue.own(kind)
    }
    assert "properties" in json.loads(invoked("schema").stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_study_is_readable_and_marked(
    number: signal.Signals, scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    many = ("-s", "replicates=80", "-s", "stop.time=400", "-j", "1", "--no-plots")
    process = started("run", scenario, "-o", folder, *many)
    wait_for(lambda: any(path.stat().st_size for path in folder.glob("journal-*.log")))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    study = load(folder)
    assert not study.complete
    assert study.manifest["status"] == "incomplete"
    table = study.table("evaluations")
    assert len(table) > 0
    assert table["test_accuracy"].between(0, 1).all()
    assert process.returncode == 130
    assert f"marked incomplete; continue with stalesim resume {folder}" in errors
    assert "Traceback" not in errors
    assert study.manifest["interrupted"]


def test_an_interruption_of_a_command_that_writes_nothing_is_one_line() -> None:
    code = (
        "import signal, sys\n"
        "from stalesim.simulator.cli import commands, main\n"
        "at_once = lambda: signal.raise_signal(signal.SIGINT)\n"
        "commands.app.command('early')(at_once)\n"
        "sys.argv = ['stalesim', 'early']\n"
        "main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "stalesim: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "run --foo",
            "No such option: --foo (Possible options: --format, --out); see ",
        ),
        ("nope", "No such command 'nope'; see "),
        ("run", "Missing argument 'scenario'; see "),
        ("run x.yaml --replicates 3", "; an entry is set by -s replicates=VALUE"),
        (f"check {__file__}", "the folder of a study, but has no manifest.json; give"),
    ],
)
def test_a_mistyped_command_is_one_line(
    arguments: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["stalesim", *arguments.split()])
    with pytest.raises(UserError) as mistake:
        commands._executed()
    line = str(mistake.value)
    assert said in line
    assert "\n" not in line
    assert line.endswith(" --help") == said.endswith("; see ")


def test_help_is_in_groups_and_no_description_of_ours_wraps() -> None:
    shown = stalesim("run", "--help", env=NARROW).stdout
    assert all(f"─ {name} ─" in shown for name in ("Execution", "Figures"))
    assert "\n│       " not in shown
    _, _, commands = stalesim("--help", env=NARROW).stdout.partition("─ Run ─")
    assert all(f"─ {name} ─" in commands for name in ("Results", "Scenarios"))
    assert "\n│   " not in commands


def _leaves(group: Any, *names: str) -> list[tuple[str, ...]]:
    if not hasattr(group, "commands"):
        return [names]
    found = (_leaves(one, *names, name) for name, one in group.commands.items())
    return [leaf for leaves in found for leaf in leaves]


@pytest.mark.parametrize("names", _leaves(get_command(commands.app)), ids=" ".join)
def test_help_of_each_command_fits_and_is_imperative(names: tuple[str, ...]) -> None:
    asked = CliRunner().invoke(commands.app, [*names, "-h"], env={"COLUMNS": "80"})
    # Rich itself puts defaults that do not fit into lines of their own.
    assert re.findall(r"\n│ {15,}(?!\[(?:default|required))[^ │].*", asked.output) == []
    about = re.search(r"Usage:.*?\n\s*\n (\w+)", asked.output, re.DOTALL)
    assert about is not None
    assert not re.fullmatch(r"\w+[^s]s", about[1]), about[1]


def test_the_version_is_that_of_the_package() -> None:
    assert stalesim("--version").stdout == f"stalesim {version('stalesim')}\n"


@pytest.mark.parametrize(
    ("typed", "place", "completed"),
    [
        ("stalesim cal", 1, ["calibrate"]),
        ("stalesim new al", 2, ["algorithm"]),
        ("stalesim plot x --style icml-", 4, ["icml-wide"]),
    ],
)
def test_a_shell_completes_commands_and_names(
    typed: str, place: int, completed: list[str]
) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(place)}
    asked = ENVIRONMENT | {"_STALESIM_COMPLETE": "complete_bash"} | words
    # The name of the program says which variable asks.
    command = [sys.executable, "-c", "import sys; sys.argv = ['stalesim']; " + MAIN]
    found = subprocess.run(command, capture_output=True, text=True, env=asked)
    assert found.stdout.split() == completed
