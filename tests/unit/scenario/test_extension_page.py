"""The examples of docs/extending.md, executed as they stand there."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stalesim.simulator.files.study import Study, load
from stalesim.simulator.parts.errors import UserError
from tests.commands import run_in
from tests.support import everything, played

PAGE = "docs/extending.md"
EXAMPLE = re.compile(
    r"```python\n# (\w+)\.py\n(.*?)```\n(```yaml\n(.*?)```)?", re.DOTALL
)
MODULES = {
    "checkups": "slowdowns",
    "halves": "availability",
    "long_steps": "preferences",
    "stars": "graphs",
    "medians": "stages",
    "cutoffs": "weights",
    "cosine": "step_sizes",
    "squares": "models",
    "rings": "data",
    "outskirts": "partitions",
    "pairs": "protocols",
    "shifts": "protocols",
    "smoothed": "losses",
    "brier": "metrics",
    "zcdp": "accountants",
    "above": "claims",
    "cycles": "figures",
}
OF_STUDY = ("above", "cycles")
"""Modules whose parts are no part of a run."""
NAMES = {
    "stars": "star",
    "medians": "median",
    "cutoffs": "cutoff",
    "brier": "brier_score",
}
"""Names of parts that are not called like their modules."""
VARIANTS = [name for name in MODULES if name not in OF_STUDY]
BASE = {
    "name": "page",
    "seed": 1,
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "iid", "clients": 4},
    },
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.05, "batch": 16},
    "stop": {"commits": 200},
    "evaluate": {"every": {"commits": 100}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes the page's modules, and a scenario that uses each in a variant."""
    folder = tmp_path_factory.mktemp("page")
    text = Path(PAGE).read_text(encoding="utf-8")
    given = {}
    for name, code, _, tree in EXAMPLE.findall(text):
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
        given[name] = yaml.safe_load(tree)
    variants = {name: given[name] for name in VARIANTS}
    assert [path.stem for path in sorted(folder.glob("*.py"))] == sorted(MODULES)
    _write(folder / "page.yaml", {**BASE, "variants": {"base": {}, **variants}})
    claimed = {
        **BASE,
        "name": "claimed",
        "replicates": 6,
        "evaluate": {"every": {"commits": 100}, **variants["brier"]["evaluate"]},
        "stop": {"commits": 200, "target": {"brier_score": 0.01}},
        **given["above"],
    }
    _write(folder / "claimed.yaml", claimed)
    return folder


def _write(path: Path, scenario: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(scenario, sort_keys=False), encoding="utf-8")


@pytest.fixture(scope="module")
def imports() -> list[str]:
    """Names the modules in both ways: as modules, and one as a file."""
    names = [f"{name}.py" if name == "medians" else name for name in MODULES]
    return [word for name in names for word in ("--plugin", name)]


@pytest.fixture(scope="module")
def study(folder: Path, imports: list[str]) -> Study:
    """Runs the scenario in two processes, which know the parts as well."""
    run_in(folder, *imports, "run", "page.yaml", "-j", "2", "-o", "out", "--no-plots")
    return load(folder / "out")


@pytest.fixture(scope="module")
def claimed(folder: Path, imports: list[str]) -> Path:
    """Runs a study with a metric, a claim and a figure of the page."""
    run_in(folder, *imports, "run", "claimed.yaml", "-o", "claimed")
    return folder / "claimed"


def by_variant(study: Study, table: str, column: str) -> dict[str, list[Any]]:
    frame = study.table(table)
    names = {run["run"]: run["variant"] for run in study.manifest["runs"]}
    return {
        names[number]: rows[column].tolist() for number, rows in frame.groupby("run")
    }


def test_every_part_runs_to_its_end(study: Study) -> None:
    stops = {run["variant"]: run["stop"] for run in study.manifest["runs"]}
    assert stops == dict.fromkeys(["base", *VARIANTS], "commits")
    commits = by_variant(study, "evaluations", "commits")
    assert all(values[-1] == 200 for values in commits.values())


def test_every_fifth_job_takes_three_times_as_long(study: Study) -> None:
    took = {}
    for run in study.manifest["runs"]:
        jobs = study.table("jobs").query(f"run == {run['run']}")
        jobs = jobs.set_index(["client", "job"])
        took[run["variant"]] = (jobs["computed_time"] - jobs["begun_time"]).dropna()
    ratio = (took["checkups"] / took["base"]).dropna()
    fifth = ratio.index.get_level_values("job") % 5 == 4
    assert fifth.sum() > 10
    np.testing.assert_allclose(ratio[fifth], 3, rtol=1e-6)
    np.testing.assert_allclose(ratio[~fifth], 1, rtol=1e-6)


def test_odd_and_even_clients_begin_jobs_by_turns(study: Study) -> None:
    run = next(r for r in study.manifest["runs"] if r["variant"] == "halves")
    jobs = study.table("jobs").query(f"run == {run['run']}").dropna()
    turn = jobs["read_time"] // 4
    assert set(jobs["client"]) == {1, 2, 3, 4}
    assert turn.nunique() > 5
    assert (turn % 2 == (jobs["client"] - 1) % 2).all()


def test_the_graph_has_an_edge_with_the_first_worker_alone(study: Study) -> None:
    messages = by_variant(study, "evaluations", "messages")["stars"]
    # Three edges, both ways, in each round of four workers' commits.
    assert messages == [0, 25 * 6, 50 * 6]


def test_stale_updates_count_nothing(study: Study) -> None:
    weight = np.array(by_variant(study, "commits", "weight")["cutoffs"])
    stale = np.array(by_variant(study, "commits", "staleness_mean")["cutoffs"]) > 3
    assert 10 < stale.sum() < stale.size - 10
    np.testing.assert_array_equal(weight, np.where(stale, 0, 1))


def test_the_step_size_falls_by_a_cosine(study: Study) -> None:
    taken = np.array(by_variant(study, "commits", "step_size")["cosine"])
    epoch = np.arange(taken.size) * 16 // 455  # training rows
    expected = 0.1 * (1 + np.cos(np.pi * np.minimum(epoch, 4) / 5)) / 2
    np.testing.assert_allclose(taken, expected, rtol=1e-6)
    assert np.unique(taken).size == 5


def test_the_model_has_a_weight_for_a_square(study: Study) -> None:
    sent = by_variant(study, "evaluations", "upload_bytes")
    assert sent["squares"][-1] * 31 == sent["base"][-1] * 61


def test_the_data_have_two_columns(study: Study) -> None:
    sent = by_variant(study, "evaluations", "upload_bytes")
    assert sent["rings"][-1] * 31 == sent["base"][-1] * 3
    assert {r["dataset"] for r in study.manifest["runs"]} == {"breast_cancer", "rings"}


def test_the_partition_gives_farther_rows_to_later_clients(study: Study) -> None:
    losses = by_variant(study, "commits", "loss")
    sizes = by_variant(study, "clients", "num_samples")
    assert sizes["outskirts"] == sizes["base"]
    assert losses["outskirts"] != losses["base"]


def test_a_round_has_every_other_client(study: Study) -> None:
    applied = by_variant(study, "commits", "num_contributions")["shifts"]
    assert set(applied) == {2}
    run = next(r for r in study.manifest["runs"] if r["variant"] == "shifts")
    jobs = study.table("jobs").query(f"run == {run['run']} and outcome == 'APPLIED'")
    assert set(jobs["client"][jobs["commit"] % 2 == 1]) == {1, 3}
    assert set(jobs["client"][jobs["commit"] % 2 == 0]) == {2, 4}


def test_pairs_of_clients_commit_together_and_wait_for_it(study: Study) -> None:
    applied = by_variant(study, "commits", "num_contributions")["pairs"]
    assert set(applied) == {2}
    run = next(r for r in study.manifest["runs"] if r["variant"] == "pairs")
    jobs = study.table("jobs").query(f"run == {run['run']} and outcome == 'APPLIED'")
    assert set(jobs.groupby("commit").size()) == {2}
    # A client's next job begins when its last one was applied, not when it arrived.
    begun = jobs.set_index(["client", "job"])["read_time"]
    ended = jobs.set_index(["client", "job"])["applied_time"]
    later = begun.index.map(lambda key: (key[0], key[1] - 1))
    known = later.isin(ended.index)
    np.testing.assert_array_equal(begun[known], ended.loc[later[known]])
    assert (jobs["applied_time"] > jobs["arrived_time"]).sum() == 200


EARLY = """
            if len(waiting) == 2:
                recorder.commit(tuple(waiting))
                waiting.clear()
            cycle.again(client)
"""
TWICE = """
            if len(waiting) >= 2:
                recorder.commit(tuple(waiting[-2:]))
                for each in waiting[-2:]:
                    cycle.again(each)
"""
LOST = """
            recorder.commit((client,))
            recorder.lose(client, 1)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (EARLY, "begins a job before its last one has ended"),
        (TWICE, "is in a commit, but its job has ended before"),
        (LOST, "ends a job that has ended before"),
    ],
)
def test_a_protocol_that_ends_jobs_wrongly_is_named(body: str, said: str) -> None:
    """It ended with a defect of the simulator, which was none."""
    text = Path(PAGE).read_text(encoding="utf-8")
    code = next(found[1] for found in EXAMPLE.findall(text) if found[0] == "pairs")
    first, rest = code.split("            if len(waiting) == 2:")
    wrong = f"{first.rstrip()}{body}\n        cycle = {rest.partition('cycle = ')[2]}"
    names: dict[str, Any] = {"__name__": "pairs"}
    exec(wrong, names)
    clients = {"compute": {"law": "expon"}}
    with pytest.raises(UserError, match=f"must end each job once, .* {said}"):
        everything(played(names["Pairs"](), clients, 4, time=9))


def test_a_chain_with_a_stage_of_ones_own_learns(study: Study) -> None:
    losses = by_variant(study, "evaluations", "test_loss")["medians"]
    assert losses[-1] < 0.5 * losses[0]


def test_the_loss_has_an_output_for_each_of_two_classes(study: Study) -> None:
    sent = by_variant(study, "evaluations", "upload_bytes")
    assert sent["smoothed"][-1] == 2 * sent["base"][-1]
    commits = by_variant(study, "commits", "loss")["smoothed"]
    assert commits[0] == pytest.approx(np.log(2), rel=1e-6)
    # Nothing is surer than 0.95, so no loss is below the entropy of that.
    assert -(0.95 * np.log(0.95) + 0.05 * np.log(0.05)) < commits[-1] < 0.6
    taken = by_variant(study, "commits", "step_size")["smoothed"]
    assert 0 < taken[0] < 0.05  # by the curvature that the record says


def test_the_metric_is_evaluated(study: Study) -> None:
    found = by_variant(study, "evaluations", "brier_score")
    assert np.isnan(found["base"]).all()
    # Before anything is learned both classes are equally likely: 2 * 0.5**2.
    assert found["brier"][0] == pytest.approx(0.5)
    assert 0 < found["brier"][-1] < 0.1
    assert study.table("evaluations")["brier_score"].dtype == np.float64


def test_the_accountant_counts_every_message(study: Study) -> None:
    run = next(r for r in study.manifest["runs"] if r["variant"] == "zcdp")
    last = study.table("privacy").query(f"run == {run['run']}").groupby("accountant")
    mine, rdp = (last.get_group(name) for name in ("zcdp", "rdp"))
    sent = mine["releases"].to_numpy(float)
    assert sent.max() > 40
    rho = sent / (2 * 4**2)  # Gaussian noise of 4 times the sensitivity
    expected = rho + 2 * np.sqrt(rho * np.log(1e5))
    np.testing.assert_allclose(mine["epsilon"], expected, rtol=1e-12)
    # RDP has credit for drawing 16 of about 114 samples.
    late = sent > 0
    assert (rdp["epsilon"].to_numpy()[late] < expected[late]).all()


def test_claims_and_figures_see_the_parts(
    claimed: Path, folder: Path, imports: list[str]
) -> None:
    shown = run_in(folder, *imports, "check", "claimed").stdout
    assert "above 0.8" in " ".join(shown.split())
    assert "holds" in shown
    names = {path.name for path in (claimed / "figures").glob("*.png")}
    assert {"cycles.png", "convergence-commits-brier_score.png"} <= names
    run_in(folder, *imports, "report", "claimed", "--out", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Times from read to arrival" in page
    assert "squared distance of probabilities from the truth" in page
    # The code of the metric and the claim is noted, that of the figure is not.
    assert set(load(claimed).manifest["modules"]) == {"brier", "above"}


def test_what_is_registered_is_listed_with_its_source(
    folder: Path, imports: list[str]
) -> None:
    lines = run_in(folder, *imports, "list").stdout.splitlines()
    listed = [line.split() for line in lines]
    for name, kind in MODULES.items():
        assert any(words[:1] == [kind] and words[2:3] == [name] for words in listed)
        part = NAMES.get(name, name)
        assert any(words[:2] == [kind, part] for words in listed)


def test_the_schema_knows_what_is_registered(folder: Path, imports: list[str]) -> None:
    known = json.loads(run_in(folder, *imports, "schema").stdout)["$defs"]
    classes = {"Squares", "Rings", "Outskirts"}
    classes |= {"Shifts", "Above", "Cosine", "Star", "Checkups", "Halves"}
    # `Cosine` is a stage, too: then modules tell them apart.
    assert classes <= {name.rpartition("__")[2] for name in known}
