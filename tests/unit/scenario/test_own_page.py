"""The examples of docs/how-to/own-model.md, executed as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stalesim.simulator.trace import load

PAGE = Path("docs/how-to/own-model.md")


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def ran(command: list[str], folder: Path) -> None:
    """Runs a command of the page where its files are."""
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-m", "stalesim", "--import", "rmse", *command[1:]],
        capture_output=True, text=True, env=environment, cwd=folder,
        timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def written(folder: Path) -> None:
    """Writes the page's files."""
    for code in blocks("python"):
        if code.startswith("# "):
            (folder / code.split()[1]).write_text(code, encoding="utf-8")
    for yaml in blocks("yaml"):
        name = yaml.splitlines()[0].removeprefix("name: ")
        (folder / f"{name}.yaml").write_text(yaml, encoding="utf-8")


@pytest.mark.long
def test_a_server_attends_to_the_parties(tmp_path: Path) -> None:
    written(tmp_path)
    ran(["stalesim", "run", "own-server.yaml", "-o", "own-server"], tmp_path)
    study = load(tmp_path / "own-server")
    # One class alone has 0.63 of the rows.
    assert study.table("evaluations")["test_accuracy"].iloc[-1] > 0.8
    assert "attention:build" in study.manifest["inputs"]


@pytest.mark.long
def test_the_page_leads_from_three_models_to_a_figure(tmp_path: Path) -> None:
    written(tmp_path)
    (command,) = (line.split("#")[0].split() for line in blocks("sh"))
    ran(command, tmp_path)
    study = load(tmp_path / "own-models")
    assert study.complete
    last = study.table("evaluations").groupby("run")["test_accuracy"].last()
    assert len(last) == 4
    assert (last > 0.6).all()
    assert {"plain:build", "plain:focal", "with_flax:Network"} < set(
        study.manifest["inputs"]
    )
    assert any((tmp_path / "own-models").rglob("*.p*"))
