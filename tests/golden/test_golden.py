"""Timelines and metrics as they were: a change of either must be meant.

    python -m tests.golden.test_golden     # writes them anew; say why in the commit

The order of events is exact on every machine and Python version; times agree to
rounding of the machine's elementary functions, metrics in float64 to 1e-9.
"""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import NO_WORKER
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.workload import Workload
from tests.runs import execute, prepared
from tests.support import SGD, everything

FOLDER = Path(__file__).parent
EXPON = {"law": "expon"}
LATTICE = {"law": "poisson", "mu": "2*m", "scale": "1/(2*M)", "shift": 1e-6}
HARSH: dict[str, Any] = {
    "groups": {
        "phones": {
            "number": 4,
            "compute": {"law": "lognorm", "s": 0.5},
            "availability": {"kind": "on_off", "on": EXPON, "off": EXPON},
            "loss": {"chance": 0.2, "timeout": 1.0},
        },
        "servers": {
            "number": 2,
            "compute": {"law": "gamma", "a": 2.0, "scale": {"law": "expon"}},
            "crashes": {"after": {"law": "expon", "scale": 9}, "down": EXPON},
        },
    },
    "upload": {"latency": EXPON, "bandwidth": 10.0},
    "slowdowns": [{"kind": "random", "factor": 2}],
}
WORLDS: dict[str, tuple[Any, dict[str, Any], Server]] = {
    "asynchronous": (Asynchronous(), {"compute": EXPON}, Server()),
    "lattice": (TSynchronous(t=3), {"compute": LATTICE}, Server()),
    "harsh": (Asynchronous(), HARSH, Server(service=EXPON | {"scale": 0.1})),
    "deadline": (Synchronous(deadline=3, timeout=5), HARSH, Server()),
    "selection": (
        Asynchronous(staleness_bound=2, beyond="wait"),
        {"compute": EXPON, "selection": {"in_flight": 4}},
        Server(),
    ),
}
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "vafl-batch": ({},),
    "vafl-all": ({"algorithm": {"upload": "all"}},),
    "vafl-private": ({"algorithm": {"perturbation": {"std": 0.3}}},),
    "sgd": (SGD,),
}


def timeline(name: str) -> dict[str, Any]:
    protocol, clients, server = WORLDS[name]
    plan = SimulatedTimeline(
        Clients.model_validate(clients),
        protocol,
        6,
        2026,
        Stop(commits=60),
        Workload(8, 8, 6),
        server=server,
    )
    rows, jobs, _ = everything(plan)
    workers = [[int(w) for w in row if w != NO_WORKER] for row in rows.worker]
    return {
        "workers": workers,
        "read_versions": [
            versions[: len(row)]
            for versions, row in zip(rows.read_version.tolist(), workers, strict=True)
        ],
        "outcomes": np.bincount(jobs.outcome, minlength=6).tolist(),
        "times": rows.time.tolist(),
    }


def metrics(name: str) -> list[float]:
    double = {"engine": {"precision": "float64"}}
    with jax.enable_x64(True):
        memory, _ = execute([prepared(*RUNS[name], double, seed=7)])
    return memory.column("evaluations", "test_loss").tolist()


@pytest.mark.parametrize("name", WORLDS)
def test_timelines_are_as_they_were(name: str) -> None:
    golden = json.loads((FOLDER / "timelines.json").read_text())[name]
    found = timeline(name)
    times, golden_times = found.pop("times"), golden.pop("times")
    assert found == golden
    np.testing.assert_allclose(times, golden_times, rtol=1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_metrics_are_as_they_were(name: str) -> None:
    golden = json.loads((FOLDER / "metrics.json").read_text())[name]
    np.testing.assert_allclose(metrics(name), golden, rtol=1e-9)


def _write() -> None:
    for file, make, names in (
        ("timelines.json", timeline, WORLDS),
        ("metrics.json", metrics, RUNS),
    ):
        text = json.dumps({name: make(name) for name in names})
        (FOLDER / file).write_text(text + "\n")


if __name__ == "__main__":
    _write()
