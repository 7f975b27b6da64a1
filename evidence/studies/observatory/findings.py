"""The two findings of the observatory: the bias of ASGD, and when MindFlayer wins."""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from stalesim.simulator import simulate
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.workload import Workload

TAU, OPTIMA = (1, 2, 7), (0, 1, 10)
STEP = 0.002
"""Small, so that a run ends near its limit and not at a client's last update."""
METHODS: dict[str, dict[str, Any]] = {
    "ASGD": {},
    "Rennala": {"protocol": {"kind": "collect", "count": 12}},
    "Rescaled ASGD": {"algorithm": {"weight": {"kind": "inverse_share"}}},
    "IA2SGD": {
        "protocol": {"warm_up": True},
        "algorithm": {"kind": "ia2sgd", "step_size": STEP, "batch": 1},
    },
    "Malenia": {
        "protocol": {"kind": "collect", "harmonic_mean": 1},
        "algorithm": {"kind": "malenia", "step_size": STEP, "batch": 1},
    },
    "Ringleader": {
        "protocol": {"kind": "phases"},
        "algorithm": {"kind": "ringleader", "step_size": STEP, "batch": 1},
    },
}
"""Methods, as variants of plain asynchronous SGD."""


def scenario() -> dict[str, Any]:
    """Returns f_i = (x - b_i)^2 / 2 with exact gradients, and every method."""
    return {
        "name": "bias",
        "seed": 1,
        "problem": {
            "data": {
                "kind": "quadratic",
                "clients": 3,
                "dimension": 1,
                "optima": list(OPTIMA),
            },
            "partition": {"kind": "natural", "clients": 3},
            "model": {"kind": "diagonal"},
            "loss": "squared",
        },
        "clients": {"compute": {"law": "constant", "value": list(TAU)}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": STEP, "batch": 1},
        "stop": {"time": 42_000},
        "evaluate": {"every": {"time": 14}, "metrics": ["gradient_norm_squared"]},
        "variants": METHODS,
    }


def ends() -> pd.DataFrame:
    """Returns where each method ends: the mean of its last ten evaluations.

    All approach the mean of the optima from below, so that x is the mean less the norm
    of the gradient there.
    """
    mean = float(np.mean(OPTIMA))
    rows = []
    with tempfile.TemporaryDirectory() as place:
        study = simulate(scenario(), Path(place) / "bias")
        found = study.table("evaluations")
        names = [run["variant"] for run in study.manifest["runs"]]
        for run, own in found.groupby("run"):
            last = own["gradient_norm_squared"].tail(10).mean()
            rows.append({"method": names[int(run)], "ends at": mean - math.sqrt(last)})
    rates = 1 / np.array(TAU)
    weighted = float(rates @ np.array(OPTIMA) / rates.sum())
    return pd.DataFrame(rows).assign(mean=mean, weighted=weighted)


SHAPE, ROUNDS, SEEDS = 1.1, 200, 10
CELLS = (
    *((1, 2), (2, 4), (3, 6), (5, 10), (10, 20), (30, 60)),
    *((5, 20), (5, 40), (5, 80), (5, 160)),
    *((10, 10), (10, 40), (10, 80), (10, 160), (10, 400)),
)
"""Clients and mean batches: by clients at two each, then by batches."""


def seconds_per_gradient(clients: int, batch: int, seed: int) -> tuple[float, float]:
    """Returns MindFlayer's and Rennala's seconds a gradient at the same mean batch.

    A gradient takes 1 s and a Lomax time; trials are given up after 1 s and its median,
    so that half of them contribute.
    """
    allotted = 1 + 2 ** (1 / SHAPE) - 1
    laws = {"compute": {"law": "lomax", "c": SHAPE, "loc": 1}}
    found = []
    for protocol in (
        Collect(quota=2 * batch // clients, allotted=allotted),
        Collect(count=batch, late="stop"),
    ):
        plan = SimulatedTimeline(
            Clients.model_validate(laws),
            protocol,
            clients,
            seed,
            Stop(rounds=ROUNDS),
            Workload(0, 0, clients),
        )
        chunks = list(plan.chunks(1 << 14))
        end = max(c.rows.time[c.rows.kind == Kind.COMMIT].max() for c in chunks)
        used = sum(int((c.jobs.outcome == Outcome.APPLIED).sum()) for c in chunks)
        found.append(float(end) / used)
    return found[0], found[1]


def mindflayer() -> pd.DataFrame:
    """Returns seconds a gradient of both by clients and batch, with 95 % intervals.

    The ratio is Rennala's over MindFlayer's in pairs, a mean of logarithms.
    """
    rows = []
    for cell in sorted(CELLS):
        pairs = np.array([seconds_per_gradient(*cell, s) for s in range(SEEDS)])
        logs = np.log(pairs[:, 1] / pairs[:, 0])
        half = stats.t.ppf(0.975, SEEDS - 1) * logs.std(ddof=1) / SEEDS**0.5
        ratio, low, high = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
        means = pairs.mean(axis=0)
        rows.append((*cell, means[0], means[1], ratio, low, high))
    columns = ["clients", "batch", "MindFlayer", "Rennala", "ratio", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
