"""The command line as a user meets it: real processes, exit codes, interrupted runs."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from stalesim.simulator.cli.runs import _begin_processes
from stalesim.simulator.config import catalogue
from stalesim.simulator.config.errors import StudyError
from stalesim.simulator.engine import processes
from stalesim.simulator.trace import load

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
EACH = """
import json, sys
from stalesim.simulator.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["stalesim", *arguments]
    try:
        main()
    except SystemExit as end:
        print("ended with", end.code)
"""
"""Calls the command line with several lists of arguments: one start for all."""
ENVIRONMENT = {**os.environ, "COLUMNS": "100"}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def stalesim(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stalesim", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300
    )


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stalesim", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def test_run_writes_a_study_with_figures_and_a_closing_table(
    scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    done = stalesim("run", scenario, "-o", folder, "-j", 2)
    assert done.returncode == 0, done.stderr
    for word in (
        "async",
        "sync",
        "final",
        "stale",
        "MB",
        "commits/real s",
        "convergence",
    ):
        assert word in done.stdout
    study = load(folder)
    assert study.complete
    assert len(study.manifest["runs"]) == 6
    assert {run["stop"] for run in study.manifest["runs"]} == {"time"}
    assert set(study.table("evaluations")["run"]) == set(range(6))
    assert (folder / "figures" / "convergence-time.png").stat().st_size > 10_000
    checked = stalesim("check", folder)
    assert "as in figure 2" in checked.stdout
    again = stalesim("run", scenario, "-o", folder)
    assert again.returncode == 0, again.stderr
    other = stalesim("run", scenario, "-o", folder, "-s", "algorithm.batch=9")
    assert other.returncode == 2
    told = " ".join(other.stderr.split())
    assert "run 'async' differs: algorithm.batch was 8 and is 9" in told
    wrong = stalesim("run", scenario, "-o", folder, "--overwrite", "-s", "seed=x")
    assert wrong.returncode == 2
    assert len(load(folder).manifest["runs"]) == 6
    one = ("-s", "algorithm.batch=9", "-s", "replicates=1", "--no-plots")
    anew = stalesim("run", scenario, "-o", folder, "--overwrite", *one)
    assert anew.returncode == 0, anew.stderr
    assert len(load(folder).manifest["runs"]) == 2
    assert not (folder / "figures").exists()


def test_a_study_that_is_there_is_not_run_again(scenario: Path, tmp_path: Path) -> None:
    def run(*options: str) -> str:
        command = [sys.executable, "-m", "stalesim", "run", str(scenario)]
        more = ["-s", "replicates=1", "-j", "1", "--no-plots", *options]
        done = subprocess.run(
            [*command, *more],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            cwd=tmp_path,
            check=True,
        )
        return done.stdout

    assert "The study is in" not in run()
    tables = sorted((tmp_path / "runs/tiny/evaluations").iterdir())
    before = [path.stat().st_mtime_ns for path in tables]
    again = run()
    assert "The study is in runs/tiny; completed runs there are skipped" in again
    assert "Study: runs/tiny" in again
    assert "Study: runs/tiny-2" in run("-s", "seed=2")
    assert [path.stat().st_mtime_ns for path in tables] == before


def test_a_users_mistake_is_one_line_and_exit_2(scenario: Path) -> None:
    calls: tuple[tuple[object, ...], ...] = (
        ("run", scenario, "-s", "sede=1"),
        ("run", scenario, "-s", "algorithm.batch=456"),
        ("run", scenario, "-s", "problem.partition.parties=31"),
        ("run", scenario, "-s", "problem.data={kind: csv, path: no.csv, label: y}"),
        (
            "run",
            scenario,
            "-s",
            "problem.loss=sigmoid",
            "-s",
            "problem.data.kind=digits",
        ),
        ("run", scenario.parent / "no.yaml"),
        ("plot", scenario.parent),
        ("check", scenario.parent / "nothing"),
    )
    texts = json.dumps([[*map(str, arguments)] for arguments in calls])
    command = [sys.executable, "-c", EACH, texts]
    done = subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ended with 2\n") == len(calls), done.stdout
    told = [line for line in done.stderr.splitlines() if "cannot decide" not in line]
    assert len(told) == len(calls), done.stderr
    assert all(line.startswith("stalesim: ") for line in told), done.stderr


@pytest.mark.long
def test_replicates_are_added_until_claims_are_decided(
    scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "grown"
    run = ("run", scenario, "-o", folder, "--until-decided")
    done = stalesim(*run, "--most", 6, "--no-plots", "-j", 2)
    assert done.returncode == 0, done.stderr
    said = load(folder).manifest["scenario"]
    assert (said["replicates"], said["looks"]) == (6, [6])
    assert "look 1 at 6 of at most 6" in stalesim("check", folder).stdout
    for options, why in (
        (("--until-decided", "--most", 9), "must keep to its plan of looks at 6"),
        (("--most", 9), "--most belongs to --until-decided"),
        (("--until-decided", "-s", "claims=[]"), "must have claims to run until"),
    ):
        bad = stalesim("run", scenario, "-o", folder, *options)
        assert bad.returncode == 2
        assert why in bad.stderr
        assert bad.stderr.count("\n") == 1
    dry = stalesim("run", scenario, "--until-decided", "--dry-run")
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
    dry = stalesim("run", scenario, "--dry-run")
    assert "6 runs in 6 batches; nothing was run" in dry.stdout
    assert "t_synchronous" in stalesim("list").stdout
    assert {*map(tuple, catalogue.listing())} == {
        (row.kind, row.name, "stalesim", row.what)
        for path in catalogue.tables()
        for row in catalogue.table(path)
    }
    assert "properties" in json.loads(stalesim("schema").stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_study_is_readable_and_marked(
    number: signal.Signals, scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    many = ("-s", "replicates=80", "-s", "stop.time=400", "-j", "1", "--no-plots")
    process = started("run", scenario, "-o", folder, *many)
    begun = time.monotonic()
    while time.monotonic() - begun < 120:
        journals = folder.glob("journal-*.log")
        if any(path.stat().st_size for path in journals):  # a run has ended
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    study = load(folder)
    assert not study.complete
    assert study.manifest["status"] == "incomplete"
    table = study.table("evaluations")
    assert len(table) > 0
    assert table["test_accuracy"].between(0, 1).all()
    if number is not signal.SIGKILL:
        assert process.returncode == 130
        assert f"marked incomplete; continue with stalesim resume {folder}" in errors
        assert "Traceback" not in errors
        assert study.manifest["interrupted"]


def test_a_damaged_part_is_named(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    assert stalesim("run", scenario, "-o", folder, "--no-plots").returncode == 0
    part = next(folder.glob("commits/part-*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(StudyError, match="damaged"):
        load(folder).table("commits")
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(
        StudyError, match=r"manifest\.json: must be as stalesim wrote it"
    ):
        load(folder)


@pytest.mark.long
def test_a_study_is_the_same_with_any_number_of_processes(
    scenario: Path, tmp_path: Path
) -> None:
    tables = []
    for jobs in (1, 2):
        folder = tmp_path / f"study-{jobs}"
        done = stalesim("run", scenario, "-o", folder, "-j", jobs, "--no-plots")
        assert done.returncode == 0, done.stderr
        tables.append(
            [load(folder).table(t) for t in ("commits", "evaluations", "jobs")]
        )
    for one, other in zip(*tables, strict=True):
        assert one.equals(other)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--foo"), "No such option: --foo (Possible options: --format, --out)"),
        (("nope",), "No such command 'nope'"),
        (("run",), "Missing argument 'scenario'"),
    ],
)
def test_a_mistyped_command_is_one_line(arguments: tuple[str], said: str) -> None:
    ended = stalesim(*arguments)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"stalesim: {said}; see ")
    assert line.endswith(" --help")


def test_a_mistake_of_place_says_where_it_belongs() -> None:
    told = stalesim("run", "x.yaml", "--replicates", "3").stderr
    assert told.strip().endswith("; an entry is set by -s replicates=VALUE")
    told = stalesim("check", __file__).stderr
    assert "must be the folder of a study, but has no manifest.json; give" in told


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
