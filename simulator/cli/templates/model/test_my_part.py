"""The model learns, and its messages weigh four bytes a weight."""

import subprocess
import sys
from pathlib import Path

import stalesim

HERE = Path(__file__).parent


def test_my_part(tmp_path):
    folder = tmp_path / "study"
    asked = ["run", "my_part.yaml", "--out", folder, "--no-plots"]
    subprocess.run([sys.executable, "-m", "stalesim", *asked], cwd=HERE, check=True)
    study = stalesim.load(folder)
    assert study.table("evaluations")["test_accuracy"].iloc[-1] > 0.8
    jobs = study.table("jobs").query("outcome == 'APPLIED'")
    assert set(jobs["upload_bytes"]) == {4 * (64 * 32 + 32 + 32 * 10)}
