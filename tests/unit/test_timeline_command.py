"""`stalesim timeline` as a user meets it."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import choices, figures, frames, page, staleness, timelines
from stalesim.simulator import cli, studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.study import load, write_manifest
from stalesim.simulator.files.study.manifest import read_manifest
from stalesim.simulator.parts.errors import ScenarioError, StudyError, UserError
from stalesim.simulator.scenario.reading import read, read_any, to_yaml
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from tests.commands import ENVIRONMENT, invoked, stalesim, started, wait_for
from tests.support import SGD, scenario

WORLD = """\
name: world
replicates: 2
clients:
  compute: {law: expon}
  upload: {bandwidth: 100}
  groups:
    slow: {number: 2, compute: {law: expon, scale: 2}}
    fast: {number: 3}
job: {upload_bytes: 10, download_bytes: 20}
protocol: {kind: asynchronous}
stop: {time: 50}
variants:
  async: {}
  sync: {protocol: {kind: synchronous}}
sweep:
  job.upload_bytes: [10, 20]
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def test_a_world_is_played_without_jax(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ordinary = tmp_path / "ordinary.yaml"
    ordinary.write_text(to_yaml(scenario()), encoding="utf-8")
    code = (
        "import sys; from stalesim.simulator import cli\n"
        "for a in (sys.argv[1:-1], ['timeline', sys.argv[-1], '-o', sys.argv[3]+'2']):"
        "\n    cli.app(a, standalone_mode=False)\n"
        "assert 'jax' not in sys.modules and 'equinox' not in sys.modules"
    )
    arguments = ["timeline", world, "-o", folder, "--gantt", "5"]
    arguments[1:4] = ["-o", folder, world]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, [*arguments, ordinary])],
        capture_output=True, text=True, env=ENVIRONMENT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = (
        "server updates/s",
        "client updates/s",
        "async, upload_bytes=10",
        "utilisation",
    )
    assert all(word in done.stdout for word in (*words, "closed form"))
    study = load(folder)
    assert study.complete
    assert len(study.manifest["runs"]) == 8
    for table in ("rows", "jobs"):
        assert set(study.table(table)["run"]) == set(range(8))
    assert {r["stop"] for r in study.manifest["runs"]} == {"time"}
    for name in ("gantt", "staleness"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000
    again = load(f"{folder}2").manifest["runs"][0]
    assert again["upload_bytes"] == 17 * 4  # as the algorithm's configuration says


def test_groups_inherit_from_all_clients_in_every_run(world: Path) -> None:
    config = read_any(world)
    assert isinstance(config, WorldScenario)
    for run in expand(config):
        behaviours = run.scenario.clients.behaviours(5)
        assert [b.upload.bandwidth for _, _, b in behaviours] == [100, 100]
        assert [b.compute.scale for _, _, b in behaviours] == [2, 1]
    text = world.with_name("again.yaml")
    text.write_text(to_yaml(config), encoding="utf-8")
    assert read_any(text) == config


def test_an_ordinary_scenario_weighs_the_same_played_alone_or_learned() -> None:
    from stalesim.simulator.engine import simulation

    for changes in ({}, SGD, {"protocol": {"kind": "centralised"}}):
        run = expand(scenario(changes))[0]
        one, other = timeline(run), simulation.prepare(run).timeline
        assert one.workload == other.workload
        assert one.digest == other.digest


def test_mistakes_are_one_line(world: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (("run", world), "play its world alone: stalesim timeline"),
        (("timeline", world, "-s", "clients.uplod={}"), "did you mean"),
        (("timeline", world, "-s", "stop={epochs: 3}"), "stop.epochs must not be set"),
        (("timeline", world, "--gantt", "0"), "--gantt must be > 0"),
        (("timeline", tmp_path / "no.yaml"), "there is no such file"),
    ):
        with pytest.raises(UserError, match=message) as no:
            invoked(*arguments)
        assert "\n" not in str(no.value)


def test_a_mistake_in_a_protocol_is_a_line(world: Path, tmp_path: Path) -> None:
    template = Path(cli.__file__).parent / "templates" / "protocol" / "my_part.py"
    text = template.read_text(encoding="utf-8").replace("(client,)", "(clint,)")
    part = tmp_path / "mistaken.py"
    part.write_text(text, encoding="utf-8")
    (line,) = [n for n, row in enumerate(text.splitlines(), 1) if "clint" in row]
    out = ("-o", tmp_path / "there", "-s", "variants={}", "-s", "protocol.kind=my_part")
    done = stalesim("--plugin", part, "timeline", world, *out)
    assert done.returncode == 1
    assert done.stderr.startswith("stalesim: world failed: NameError: name 'clint'")
    assert done.stderr.endswith(f" (mistaken.py:{line})\n")
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "there").exists()


def test_a_world_is_checked_with_its_line(world: Path) -> None:
    with pytest.raises(ScenarioError, match=r"world\.yaml:1: must have a problem"):
        read(world)
    bad = world.with_name("bad.yaml")
    for old, new, message in (
        ("{law: expon}", "{law: expn}", r"bad\.yaml:4: clients\.compute"),
        ("number: 3", "number: 0", r"bad\.yaml:8: clients\.groups\.fast\.number"),
        ("{kind: synchronous}", "{kind: syncronous}", r"bad\.yaml:14: variants\.sync"),
        ("[10, 20]", "[10, -1]", r"bad\.yaml:16: sweep of job\.upload_bytes = -1"),
    ):
        bad.write_text(WORLD.replace(old, new), encoding="utf-8")
        with pytest.raises(ScenarioError, match=message):
            read_any(bad)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_readable_parts(
    number: signal.Signals, world: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    process = started("timeline", world, "-s", "stop.time=1000000", "-o", folder)
    wait_for(lambda: any(path.stat().st_size for path in folder.glob("journal-*.log")))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    study = load(folder)
    assert not study.complete
    assert len(study.table("rows")) > 0
    assert set(study.table("jobs")["client"]) <= {1, 2, 3, 4, 5}
    if number is signal.SIGTERM:
        assert process.returncode == 130
        assert "marked incomplete" in errors
        assert study.manifest["interrupted"]
    again = record(read_any(world), folder)  # the folder can be used at once
    assert again.complete
    assert again.table("rows")["time"].max() <= 50


def test_a_refused_recording_leaves_nothing(tmp_path: Path) -> None:
    study = scenario(SGD)
    played = record(study, tmp_path / "played")
    replaying = study.replaced(timeline={"replay": str(played.folder)})
    part = next(played.folder.glob("rows/part-*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:200])
    with pytest.raises(StudyError, match="is damaged"):
        record(replaying, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError, match="is damaged"):
        record(replaying, tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    part.write_bytes(whole)
    assert record(replaying, tmp_path / "again").complete


def test_a_timeline_replaces_none_but_one_that_was_cut_short(
    world: Path, tmp_path: Path
) -> None:
    config, folder = read_any(world), tmp_path / "out"
    record(config, folder)
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        record(config, folder)
    manifest = folder / "manifest.json"
    write_manifest(folder, read_manifest(folder) | {"status": "incomplete"})
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        record(config, folder)
    assert (folder / "mine.txt").read_text() == "mine"
    (folder / "mine.txt").unlink()
    assert record(config, folder).complete
    for text in ('{"kind": "study", "status": "incomplete"}', "{", "[]"):
        manifest.write_text(text)
        with pytest.raises(StudyError, match="must be a new or empty folder"):
            record(config, folder)
        assert manifest.read_text() == text
    manifest.unlink()
    (folder / "manifest.json.partial").write_text("{")
    assert record(config, folder).complete  # killed before the first manifest


def test_the_groups_of_a_scenario_are_kept_wherever_its_clients_are_shown(
    world: Path, tmp_path: Path
) -> None:
    study = record(read_any(world), tmp_path / "played")
    known = study.table("clients")
    expected = ["slow", "slow", "fast", "fast", "fast"]
    for run in range(8):
        mine = known.loc[known["run"] == run]
        assert mine["client_group"].tolist() == expected
    tables = dict(timelines.tables(study))
    names = ["1 (slow)", "2 (slow)", "3 (fast)", "4 (fast)", "5 (fast)"]
    assert tables["async, upload_bytes=10: clients"]["client"].tolist() == names
    drawn = dict(timelines.standard(study))["gantt"].axes[0]
    assert [tick.get_text() for tick in drawn.get_yticklabels()] == names
    grouped = read_any(world).model_dump(mode="json")["clients"]
    learned = studies.simulate(scenario(SGD, {"clients": grouped}), tmp_path / "s")
    assert learned.table("clients")["client_group"].tolist() == expected
    figure = figures.staleness_histogram(learned, "base")
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes]
    assert titles == [f"client {name}" for name in names]
    divided = staleness.by_client_group(learned).set_index("clients")
    assert divided.index.tolist() == ["all", "slow (2)", "fast (3)"]
    jobs = frames.jobs(learned).dropna(subset="staleness")
    of_group = jobs["client"].map(dict(enumerate(expected, start=1)))
    for name, ages in (
        ("all", jobs["staleness"]),
        ("slow (2)", jobs.loc[of_group == "slow", "staleness"]),
        ("fast (3)", jobs.loc[of_group == "fast", "staleness"]),
    ):
        row = divided.loc[name]
        assert row["count"] == len(ages)
        assert row["mean"] == pytest.approx(ages.mean())
        assert row["max"] == ages.max()
        assert row["95 %"] == np.quantile(ages, 0.95, method="inverted_cdf")
    assert "by client group" in page.html(learned)
    plain = studies.simulate(scenario(SGD), tmp_path / "plain")
    assert staleness.by_client_group(plain)["clients"].tolist() == ["all"]
    assert staleness.divided(plain).empty
    with pytest.raises(UserError, match="has tuned no variants"):
        choices.table(plain)


def test_a_summary_has_tables_and_no_gantt_picture(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    whole = invoked("timeline", world, "--out", tmp_path / "whole", "--no-plots")
    summed = invoked("timeline", world, "--out", folder, "--summary")
    # The same tables are printed; what follows are names of files.
    cut = summed.stdout.index("Figure")
    assert summed.stdout[:cut] in whole.stdout
    drawn = sorted(path.name for path in (folder / "figures").glob("*.png"))
    assert drawn == ["comparison.png", "staleness.png"]
    assert not {"rows", "jobs", "incidents"} & {path.name for path in folder.iterdir()}


def test_tables_show_how_clients_spent_their_time(world: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "out", tmp_path / "clients.csv"
    invoked("timeline", world, "--out", folder, "--no-plots")
    shown = invoked("tables", folder, "--clients").stdout
    assert "world: virtual seconds of clients, and their shares" in shown
    invoked("tables", folder, "--clients", "--out", file)
    told = pd.read_csv(file)
    spent = told[["compute_s", "messages_s", "idle_s"]]
    assert len(told) == 4 * 5
    assert spent.sum(axis=1).to_numpy() == pytest.approx(50)
    for option in (("--out", "clients.tex"), ("--latex",), ("--at", 3)):
        with pytest.raises(UserError, match=r"\.csv"):
            invoked("tables", folder, "--clients", *option)
    with pytest.raises(UserError, match="or add --clients"):
        invoked("tables", folder)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--summary", "--gantt", 5), "--gantt needs every job"),
        (("--set", "variants.sync.record=summary"), "the same for all runs of a study"),
    ],
)
def test_what_needs_the_record_refuses_a_summary(
    world: Path, tmp_path: Path, arguments: tuple[object, ...], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        invoked("timeline", world, "--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_summary_is_not_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "summary"
    record(scenario(SGD, {"record": "summary"}), folder)
    again = scenario(SGD, {"timeline": {"replay": str(folder)}})
    with pytest.raises(StudyError, match="no table jobs, because the scenario has"):
        studies.simulate(again, tmp_path / "again")


def test_a_run_without_its_record_has_the_same_results(tmp_path: Path) -> None:
    whole = studies.simulate(scenario(SGD), tmp_path / "whole")
    summed = studies.simulate(scenario(SGD, {"record": "summary"}), tmp_path / "sum")
    assert {*whole.files} - {*summed.files} == {"commits", "jobs"}
    for table in ("evaluations", "clients", "staleness"):
        pd.testing.assert_frame_equal(whole.table(table), summed.table(table))
