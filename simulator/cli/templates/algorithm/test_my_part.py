"""It learns, and a message weighs a bit for each weight."""

import subprocess
import sys
from pathlib import Path

import stalesim

HERE = Path(__file__).parent


def test_my_part(tmp_path):
    folder = tmp_path / "study"
    command = ["-m", "simulator.cli", "--import", HERE / "my_part.py", "run"]
    asked = [HERE / "my_part.yaml", "--out", folder, "--no-plots"]
    subprocess.run([sys.executable, *command, *asked], check=True)
    study = stalesim.load(folder)
    assert study.table("evaluations")["test_accuracy"].iloc[-1] > 0.8
    jobs = study.table("jobs").query("outcome == 'APPLIED'")
    assert set(jobs["upload_bytes"]) == {-(-(64 * 10 + 10) // 8)}
