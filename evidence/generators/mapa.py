"""Tables of MAPA: its step sizes, its stages and the noise laws in numbers."""

import itertools
import math
from collections.abc import Sequence

import pandas as pd

from stalesim.simulator.catalogue.algorithms.edge_cloud.part import Mapa
from stalesim.simulator.catalogue.algorithms.edge_cloud.stages import stages

from ..theory import mapa, noise

SETTING = {"smoothness": 10.0, "sigma": 30.0, "batch": 12}
"""L, sigma and b of MAPA's parameter study."""
CLIENTS, EPSILON, DELTA, THETA, RADIUS = 5, 0.1, 1e-3, 0.5, 1.0
GAP = math.log(2)
"""f(x_1) - f(x*) of logistic regression from zero, at most (M-04)."""


def step_table(iterations: Sequence[int] = (1, 100, 10_000)) -> pd.DataFrame:
    """Tabulates the step sizes of MAPA's Table II with the defaults of its study.

    Args:
        iterations: t, from 1.

    Returns:
        One row per algorithm and t: `algorithm`, `t`, `step_size`.

    Source: MAPA, Table II; K = 5, R = 1 (M-11), gap ln 2 (M-04), noise of the paper's
        second moment (M-02), AUDP with Delta S_0 of equation 12 (M-10).
    """
    staged = _stages()
    last = list(itertools.accumulate(stage.iterations for stage in staged))
    rows = []
    for t in iterations:
        stage = next(s for s, end in zip(staged, last, strict=True) if t <= end)
        audp = mapa.audp_step(
            t,
            smoothness=SETTING["smoothness"],
            variance=staged[0].variance,
            max_staleness=CLIENTS,
        )
        steps = {
            "CSGD": mapa.csgd_step(t, radius=RADIUS, **SETTING),
            "ASGD": mapa.asgd_step(t, radius=RADIUS, max_staleness=CLIENTS, **SETTING),
            "AUDP": audp,
            "MAPA": stage.step_size,
        }
        rows += [{"algorithm": k, "t": t, "step_size": v} for k, v in steps.items()]
    return pd.DataFrame(rows).sort_values("algorithm", kind="stable", ignore_index=True)


def stage_table(num_stages: int = 11) -> pd.DataFrame:
    """Tabulates MAPA's stages by the formulas and in the simulator.

    Args:
        num_stages: rows.

    Returns:
        One row per stage: `stage`, `sensitivity`, `clip_bound`, `variance` (Delta_b),
        `divisor` (P), `step_size` and `length` (T_s) by theory; `simulated_step` and
        `iterations` of the simulator, "-" in the last row, which it does not end.

    Source: MAPA, Algorithm 1, equations 12, 15 and 16.
    """
    config = Mapa(epsilon=EPSILON, theta=THETA, gap=GAP)
    simulated = stages(config, int(SETTING["batch"]), CLIENTS, 1)
    rows, before = [], 0
    for number, (mine, own) in enumerate(
        zip(_stages()[:num_stages], simulated, strict=False), 1
    ):
        lasts = own.last - before
        rows.append(
            {"stage": number}
            | {k: v for k, v in mine._asdict().items() if k != "iterations"}
            | {
                "simulated_step": 1 / own.curvature,
                "iterations": str(lasts) if number < num_stages else "-",
            }
        )
        before = own.last
    return pd.DataFrame(rows)


def noise_table(
    dimensions: Sequence[int] = (1, 2, 10, 256, 784), epsilon: float = 1.0
) -> pd.DataFrame:
    """Tabulates the three noise laws of MAPA at scale 1, and their privacy.

    Args:
        dimensions: d.
        epsilon: claimed; the shift has norm Delta S, spread over all coordinates for
            reading C.

    Returns:
        One row per law and d: `reading`, `law`, `d`, `mean_norm`, `second_moment`,
        `epsilon_dp` (whether it keeps the claimed epsilon) and `delta` at it.

    Source: MAPA, equation 6; M-01, M-02.
    """
    rows = []
    for reading, law in zip("ABC", noise.LAWS, strict=True):
        for d in dimensions:
            moments = noise.moments(law, d)
            delta = noise.delta(law, d, epsilon)
            rows.append(
                {
                    "reading": reading,
                    "law": law,
                    "d": d,
                    "mean_norm": float(moments.mean),
                    "second_moment": round(moments.second),
                    "epsilon_dp": "no" if delta > 0 else "yes",
                    "delta": delta,
                }
            )
    return pd.DataFrame(rows)


def _stages() -> list[mapa.MapaStage]:
    initial = mapa.initial_sensitivity(SETTING["sigma"], int(SETTING["batch"]), DELTA)
    made = mapa.mapa_stages(
        initial=initial,
        epsilon=EPSILON,
        theta=THETA,
        gap=GAP,
        max_staleness=CLIENTS,
        **SETTING,
    )
    return list(itertools.islice(made, 20))
