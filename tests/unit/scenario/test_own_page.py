"""The examples of docs/how-to/{own-model,pytorch}.md, executed as they stand there."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from stalesim.simulator.files.study import Study, load
from tests.commands import run_in
from tests.support import blocks

MODELS, PYTORCH = "docs/how-to/own-model.md", "docs/how-to/pytorch.md"
NO_TORCH = find_spec("torch") is None


def study_of(page: str, folder: Path, *command: str) -> Study:
    """Writes the files of a page, and runs a study of it there."""
    for code in blocks(page, "python"):
        if code.startswith("# "):
            (folder / code.split()[1]).write_text(code, encoding="utf-8")
    for yaml in blocks(page, "yaml"):
        name = yaml.splitlines()[0].removeprefix("name: ")
        (folder / f"{name}.yaml").write_text(yaml, encoding="utf-8")
    run_in(folder, *command, "-o", "out")
    return load(folder / "out")


@pytest.mark.long
def test_a_server_attends_to_the_parties(tmp_path: Path) -> None:
    command = ("--plugin", "rmse", "run", "own-server.yaml")
    study = study_of(MODELS, tmp_path, *command)
    # One class alone has 0.63 of the rows.
    assert study.table("evaluations")["test_accuracy"].iloc[-1] > 0.8
    assert "attention:build" in study.manifest["inputs"]


@pytest.mark.long
def test_the_page_leads_from_three_models_to_a_figure(tmp_path: Path) -> None:
    (line,) = blocks(MODELS, "sh")
    _, *command = line.split("#")[0].split()
    study = study_of(MODELS, tmp_path, "--plugin", "rmse", *command)
    assert study.complete
    last = study.table("evaluations").groupby("run")["test_accuracy"].last()
    assert len(last) == 4
    assert (last > 0.6).all()
    assert {"plain:build", "plain:focal", "with_flax:Network"} < set(
        study.manifest["inputs"]
    )
    assert any((tmp_path / "out").rglob("*.p*"))


@pytest.mark.parametrize(
    "name",
    [
        "in-numpy",
        pytest.param("in-torch", marks=pytest.mark.skipif(NO_TORCH, reason="no torch")),
    ],
)
def test_work_of_another_framework_learns(name: str, tmp_path: Path) -> None:
    study = study_of(PYTORCH, tmp_path, "run", f"{name}.yaml")
    assert {run["mode"] for run in study.manifest["runs"]} == {"host"}
    tested = study.table("evaluations")
    last = tested[tested["commits"] == tested["commits"].max()]["test_accuracy"]
    assert (last > 0.5).all()
    if name == "in-numpy":
        assert (study.table("commits")["length"] > 0).all()
