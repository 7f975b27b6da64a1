"""No client commits twice in a row, and some contributions are rejected."""

import subprocess
import sys
from pathlib import Path

import stalesim

HERE = Path(__file__).parent


def test_my_part(tmp_path):
    folder = tmp_path / "timeline"
    command = ["-m", "stalesim", "--plugin", HERE / "my_part.py", "timeline"]
    asked = [HERE / "my_part.yaml", "--out", folder, "--no-plots"]
    subprocess.run([sys.executable, *command, *asked], check=True)
    study = stalesim.load(folder)
    who = study.table("rows")["worker"].to_numpy()
    assert len(who) == 5000
    assert (who[1:] != who[:-1]).all()
    assert (study.table("jobs")["outcome"] == "REJECTED").any()
