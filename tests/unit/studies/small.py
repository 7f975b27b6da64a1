"""Small studies, which tests change: they have a program in common."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stalesim.simulator.files.study import Study, load
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.progress import StudyProgress, silent
from tests.support import write_study

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 1,
    "problem": {"data": {"kind": "digits"}, "partition": {"kind": "iid", "clients": 5}},
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
    "stop": {"commits": 60},
    "evaluate": {"every": {"commits": 20}},
    "engine": {"mode": "compiled", "chunk": 64},
}
SEARCHED: dict[str, Any] = SMALL | {
    "stop": {"commits": 20},
    "evaluate": {"every": {"commits": 10}, "metrics": ["test_loss"]},
}
"""A study whose step size is searched."""


class PlayedStudies:
    """Writes studies whose losses are known, in place of running them.

    Args:
        loss: Function of a run to its last test loss; NaN for one that diverges.
        virtual_s: Virtual seconds of each run.
        kill_at: Number of the call that is killed.

    Attributes:
        calls: Runs that each call has added.
    """

    def __init__(
        self, loss: Callable[[Any], float], virtual_s: float = 1.0, kill_at: int = 0
    ) -> None:
        self._loss, self._virtual_s, self._kill_at = loss, virtual_s, kill_at
        self.calls: list[int] = []

    def __call__(
        self, scenario: Scenario, path: Path, progress: Any = silent, **options: Any
    ) -> Study:
        runs = expand(scenario)
        there = (path / "manifest.json").exists()
        old = load(path).manifest if there else {"runs": []}
        left = len(runs) - len(old["runs"])
        self.calls.append(left)
        for ended in range(left + 1):  # this session's commits alone, as of a study
            part = ended / max(left, 1)
            progress(StudyProgress(part, ended, left, commits=10 * ended))
        if len(self.calls) == self._kill_at:
            raise KeyboardInterrupt
        losses = np.array([self._loss(run) for run in runs])
        told = {"protocol": "asynchronous", "stop_reason": "x", "commits": 20}
        told["virtual_s"] = self._virtual_s
        stops = np.where(np.isnan(losses), "diverged", "commits").tolist()
        entries = [
            run.identity | told | {"stop": stop}
            for run, stop in zip(runs, stops, strict=True)
        ]
        kept = path.parent / "kept"
        if (path / "tuning").exists():  # of a comparison, in its folder
            shutil.move(path / "tuning", kept)
        shutil.rmtree(path, ignore_errors=True)
        counts = ("commits", "contributions", "upload_bytes", "download_bytes")
        counts += ("rounds", "messages")
        table = {
            "run": np.arange(len(runs), dtype=np.int32),
            "time": np.ones(len(runs)),
            **{key: np.zeros(len(runs), np.int64) for key in counts},
            "epochs": np.zeros(len(runs)),
            "test_loss": losses,
        }
        started = {k: old[k] for k in ("inputs", "modules", "environment") if k in old}
        tree = scenario.model_dump(mode="json")
        manifest = {"name": scenario.name, "runs": entries, "scenario": tree} | started
        write_study(path, manifest, {"evaluations": table})
        if kept.exists():
            shutil.move(kept, path / "tuning")
        return load(path)
