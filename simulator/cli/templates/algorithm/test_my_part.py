"""It learns, and each step is as short as its staleness makes it."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import stalesim

HERE = Path(__file__).parent


def test_my_part(tmp_path):
    folder = tmp_path / "study"
    command = ["-m", "stalesim", "--plugin", HERE / "my_part.py", "run"]
    asked = [HERE / "my_part.yaml", "--out", folder, "--no-plots"]
    subprocess.run([sys.executable, *command, *asked], check=True)
    study = stalesim.load(folder)
    assert study.table("evaluations")["test_accuracy"].iloc[-1] > 0.8
    commits = study.table("commits")
    assert commits["staleness_mean"].nunique() > 3
    expected = 0.1 / (1 + 0.5 * commits["staleness_mean"])
    np.testing.assert_allclose(commits["step_size"], expected, rtol=1e-6)
