"""The examples of docs/how-to/pytorch.md, executed as they stand there."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from stalesim.simulator.trace import load

PAGE = Path("docs/how-to/pytorch.md")


@pytest.mark.parametrize(
    "name",
    [
        "in-numpy",
        pytest.param(
            "in-torch",
            marks=pytest.mark.skipif(
                find_spec("torch") is None, reason="PyTorch is an optional package"
            ),
        ),
    ],
)
def test_a_study_of_the_page_learns(name: str, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        (tmp_path / code.split()[1]).write_text(code, encoding="utf-8")
    (yaml,) = re.findall(rf"```yaml\n(name: {name}\n.*?)```", text, re.DOTALL)
    (tmp_path / "study.yaml").write_text(yaml, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "stalesim", "run", "study.yaml", "-o", "out"],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=500,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "COLUMNS": "120"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    study = load(tmp_path / "out")
    assert {run["mode"] for run in study.manifest["runs"]} == {"host"}
    tested = study.table("evaluations")
    last = tested[tested["commits"] == tested["commits"].max()]["test_accuracy"]
    assert (last > 0.5).all()
    if name == "in-numpy":
        assert (study.table("commits")["length"] > 0).all()
