"""The examples of docs/how-to/own-model.md, executed as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.trace import load

PAGE = Path("docs/how-to/own-model.md")


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.long
def test_the_page_leads_from_three_models_to_a_figure(tmp_path: Path) -> None:
    for code in blocks("python"):
        if code.startswith("# "):
            (tmp_path / code.split()[1]).write_text(code, encoding="utf-8")
    (yaml,) = blocks("yaml")
    (tmp_path / "own-models.yaml").write_text(yaml, encoding="utf-8")
    (command,) = (line.split("#")[0].split() for line in blocks("sh"))
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-m", "simulator.cli", "--import", "rmse", *command[1:]],
        capture_output=True, text=True, env=environment, cwd=tmp_path,
        timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    study = load(tmp_path / "own-models")
    assert study.complete
    last = study.table("evaluations").groupby("run")["test_accuracy"].last()
    assert len(last) == 4
    assert (last > 0.6).all()
    assert {"plain:build", "plain:focal", "with_flax:Network"} < set(
        study.manifest["inputs"]
    )
    assert any((tmp_path / "own-models").rglob("*.p*"))
