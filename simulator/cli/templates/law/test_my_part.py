"""A job takes the mean of the law, and a fifth of the pauses."""

import subprocess
import sys
from pathlib import Path

import pytest

import stalesim

HERE = Path(__file__).parent


def test_my_part(tmp_path):
    folder = tmp_path / "timeline"
    command = ["-m", "stalesim", "--plugin", HERE / "my_part.py", "timeline"]
    asked = [HERE / "my_part.yaml", "--out", folder, "--no-plots"]
    subprocess.run([sys.executable, *command, *asked], check=True)
    jobs = stalesim.load(folder).table("jobs").query("outcome == 'APPLIED'")
    took = jobs["computed_time"] - jobs["begun_time"]
    assert took.mean() == pytest.approx(1.0 + 2.0 / 5, rel=0.05)
