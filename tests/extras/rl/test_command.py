"""`stalesim timeline` of a scenario of samples, and what is read from its folder."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from stalesim.analysis.figures.style import OKABE_ITO
from stalesim.simulator.cli.commands import app
from stalesim.simulator.extras import rl
from stalesim.simulator.extras.rl import report
from stalesim.simulator.extras.rl.recording import record_rollouts, sources_of
from stalesim.simulator.extras.rl.scenario import RolloutScenario
from stalesim.simulator.extras.rl.tables import predictions
from stalesim.simulator.files.study import load
from stalesim.simulator.parts import attached
from stalesim.simulator.parts.errors import ScenarioError, StudyError, UserError
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.study import expand
from tests.unit.scenario.test_shipped import FILES, check_items, manifest_of

pytestmark = pytest.mark.costly
SHIPPED = [path for path in FILES if "\ngeneration:" in path.read_text("utf-8")]

WORLD = """\
name: small
generation:
  slots: 8
  tokens: {law: expon, scale: 100}
  seconds_per_token: 0.1
  group: 2
trainer: {samples: 4, step: {law: constant, value: 2}}
stop: {steps: 20}
sweep: {generation.slots: [4, 8]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def test_a_folder_has_tables_measures_and_the_scenario(
    file: Path, tmp_path: Path
) -> None:
    scenario, folder = read_any(file), tmp_path / "out"
    study = record_rollouts(scenario, folder)
    frame = rl.compared(load(folder))
    assert frame["generation.slots"].tolist() == ["4", "8"]
    samples, steps = (study.table(name) for name in ("samples", "steps"))
    trained = samples[(samples["outcome"] == "TRAINED") & (samples["run"] == 0)]
    assert len(trained) == 20 * 4
    late = trained[trained["step"] > 4]
    age = late["step"] - 1 - late["start_version"]
    assert frame["staleness_mean"][0] == pytest.approx(age.mean())
    counted = study.table("sample_ages").query("run == 0")
    assert counted["samples"].sum() == len(late)
    assert counted["tokens"].sum() == pytest.approx(late["tokens"].sum())
    assert len(steps) >= 40
    assert np.isfinite(frame["predicted_staleness_mean"]).all()
    again = record_rollouts(
        RolloutScenario.model_validate(study.manifest["scenario"]), tmp_path / "again"
    )
    for one, two in zip(study.manifest["runs"], again.manifest["runs"], strict=True):
        assert {**one, "elapsed_s": 0} == {**two, "elapsed_s": 0}
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        record_rollouts(scenario, folder)


@pytest.mark.slow
def test_commands_on_studies_read_a_world_of_samples(
    file: Path, tmp_path: Path
) -> None:
    """It had a manifest and tables of its own, which no other command could read."""
    folder = str(tmp_path / "out")

    def command(*words: str) -> None:
        app([*words], standalone_mode=False)

    command("timeline", str(file), "--out", folder, "--no-plots")
    command("plot", folder)
    if "capsules" in attached.extras():
        command("capsule", folder)
        again = str(tmp_path / "again")
        command("rerun", f"{folder}/capsule.zip", "--out", again)
    command("report", folder)
    names = {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.*")}
    assert {"figures/swept.png", "figures/swept.txt", "report.html"} <= names
    page = (Path(folder) / "report.html").read_text(encoding="utf-8")
    assert "4 slots that generate samples" in page
    assert "SimPy&#39;s event loop" not in page
    for refused in ("tables", "check", "resume"):
        with pytest.raises(UserError, match="must be a study with numerics"):
            command(refused, folder)


def test_pictures_of_clients_are_refused(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = ["timeline", str(file), "--out", str(folder), "--gantt", "3"]
    with pytest.raises(UserError, match="--gantt shows clients"):
        app(command, standalone_mode=False)
    assert not folder.exists()


def test_summaries_have_no_table_of_samples_and_titles_say_what_is_closed(
    file: Path, tmp_path: Path
) -> None:
    study = record_rollouts(read_any(file, ["record=summary"]), tmp_path / "out")
    assert sorted(study.files) == ["sample_ages", "steps"]
    with pytest.raises(StudyError, match="there is no table samples"):
        study.table("samples")
    for rho, is_shown in ((0.9, True), (2.9, False)):
        for run in study.manifest["runs"]:
            run["workload"]["rho"] = rho
        ((title, table),) = report.tables(study)
        assert ("(closed form)" in title) is is_shown
        assert table["staleness"].str.contains("(", regex=False).any() == is_shown


def test_closed_forms_are_left_out_above_rho_one() -> None:
    """Its parts were wrong there: 0.672 steps in the queue, where each waits one."""
    run = {"slots": 64, "batch": 32, "capacity": 1, "tail": 1.2, "exempt": False}
    below, above = (predictions(run | {"rho": rho}) for rho in (0.9, 2.9))
    assert below["in_queue"] == 0.9
    assert below["staleness_mean"] == pytest.approx(0.9 + 64 * 1.2 / 32)
    assert np.isnan(list(above.values())).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["trainer.samples=5"], "trainer.samples must be a multiple of"),
        (["generation.seconds_per_token=m-1"], "must be > 0, got 0 with 1 busy"),
        (["queue={order: in_order, capacity: 1}"], "queue.capacity must be left out"),
        (["weights={every: 3}", "queue={max_age: 1}"], "queue.max_age must be at leas"),
        (["weights.recompute=0.5"], "weights.recompute must be left out"),
        (["generation.tokens={law: constant, value: 0}"], "must be above 0"),
    ],
)
def test_mistakes_are_told_in_one_line(
    file: Path, changes: list[str], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        read_any(file, changes)


def test_what_is_lost_is_drawn_next_to_what_is_gained(tmp_path: Path) -> None:
    """Capacities looked equally cheap, and samples that they dropped were not drawn."""
    tree = yaml.safe_load(WORLD) | {
        "queue": {"capacity": 1},
        "replicates": 2,
        "sweep": {"queue.capacity": [1, 2]},
    }
    tree["generation"] |= {"slots": 16, "group": 1}
    tree["trainer"]["step"]["value"] = 8
    study = record_rollouts(RolloutScenario.model_validate(tree), tmp_path / "out")
    drawn = dict(report.standard(study))
    labels = [axes.get_ylabel() for axes in drawn["swept"].axes]
    assert "Samples dropped (share)" in labels
    dropped = drawn["swept"].axes[labels.index("Samples dropped (share)")]
    (bars,) = dropped.containers
    means = rl.compared(study)["samples_dropped"]
    assert means.min() > 0
    np.testing.assert_allclose(bars[0].get_ydata(), means)
    assert "95 % t-intervals" in drawn["swept"].get_supxlabel()
    lines = drawn["staleness"].axes[0].get_lines()
    assert [line.get_color() for line in lines] == list(OKABE_ITO[:2])
    none_lost = RolloutScenario.model_validate(tree | {"queue": {"full": "wait"}})
    calm = dict(report.standard(record_rollouts(none_lost, tmp_path / "calm")))
    assert len(calm["swept"].axes) == 2


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_world_fills_its_page(path: Path) -> None:
    scenario = read_any(path)
    assert isinstance(scenario, RolloutScenario)
    manifest = manifest_of(scenario, expand(scenario), kind="samples")
    for run, source in zip(manifest["runs"], sources_of(scenario), strict=False):
        run |= {key: source.entry[key] for key in ("num_clients", "protocol")}
    check_items(manifest)
