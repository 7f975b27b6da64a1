"""Tables of generated documents: theory in numbers, one labelled frame each.

Formulas of the simulator are passed in, because analysis imports no simulator.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from scipy import stats

from analysis import theory
from analysis.theory import mapa, noise
from generators import roughness

FORMS = ("gdp_uniform", "gdp_poisson", "gdp_linear")
SETTING = {"smoothness": 10.0, "sigma": 30.0, "batch": 12}
"""L, sigma and b of MAPA's parameter study."""
CLIENTS, EPSILON, DELTA, THETA, RADIUS = 5, 0.1, 1e-3, 0.5, 1.0
GAP = math.log(2)
"""f(x_1) - f(x*) of logistic regression from zero, at most (M-04)."""


def gdp_table(
    noise_multiplier: Callable[[float, int, float, Any], float],
    epsilon: Callable[[float, float], float],
    *,
    mus: Sequence[float] = (0.5, 1.0, 2.0),
    releases: Sequence[int] = (100, 1_000, 10_000, 100_000),
    sampling_ratios: Sequence[float] = (0.01, 1.0),
    delta: float = 1e-5,
) -> pd.DataFrame:
    """Tabulates the noise multiplier that a privacy target needs.

    Args:
        noise_multiplier: of (mu, releases, sampling ratio, form), as
            `simulator.privacy.noise_multiplier`.
        epsilon: of (mu, delta), as `simulator.privacy.epsilon`.
        mus: targets.
        releases: K.
        sampling_ratios: p.
        delta: of the epsilon column.

    Returns:
        One row per (mu, K, p): `mu`, `epsilon`, `releases`, `sampling_ratio`, and z by
        each form in a column of the form's name.

    Source: VAFL, equation 15 with V-18.
    """
    return pd.DataFrame(
        [
            {
                "mu": mu,
                "epsilon": epsilon(mu, delta),
                "releases": count,
                "sampling_ratio": ratio,
                **{form: noise_multiplier(mu, count, ratio, form) for form in FORMS},
            }
            for ratio in sampling_ratios
            for count in releases
            for mu in mus
        ]
    )


def smoothing_table(
    theorem5: Callable[..., Any],
    *,
    cs: Sequence[float] = (0.1, 0.3, 1.0),
    hidden_cs: Sequence[float] = (0.1, 0.3, 1.0),
    width: int = 4,
    num_draws: int = 20_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Tabulates Theorem 5's constants beside a measured three-layer ReLU embedding.

    Args:
        theorem5: as `simulator.privacy.smoothing.theorem5`.
        cs: standard deviations of the last layer's noise.
        hidden_cs: standard deviations of the other layers' noise.
        width: of every layer.
        num_draws: of the measurement.
        seed: of the measurement.

    Returns:
        One row per (c, c_l): `c`, `hidden_c`, and for the variants `printed` and
        `tight` the sum over layers (`..._total`) and the largest constant of a layer's
        biases (`..._bias`); `measured_total` and `measured_bias` are what each bounds.

    Source: VAFL, equation 13; V-23.
    """
    rows = []
    for c in cs:
        for hidden_c in hidden_cs:
            measured = roughness.measure(
                c, hidden_c, width=width, num_draws=num_draws, seed=seed
            )
            row = {"c": c, "hidden_c": hidden_c}
            for variant in ("printed", "tight"):
                bound = theorem5(
                    measured.weight_norms,
                    measured.input_norms,
                    (width,) * roughness.LAYERS,
                    c,
                    (hidden_c,) * (roughness.LAYERS - 1),
                    variant=variant,
                )
                row[f"{variant}_total"] = bound.total
                row[f"{variant}_bias"] = max(bound.bias)
            row["measured_total"] = measured.ratio
            row["measured_bias"] = max(measured.bias_ratios)
            rows.append(row)
    return pd.DataFrame(rows)


def throughput_table() -> pd.DataFrame:
    """Tabulates the exact throughput of the delay laws of VAFL's experiments.

    Returns:
        One row per setting: `setting`, `num_clients`, `expected_maximum` (s),
        `synchronous` and `asynchronous` (block updates per second), `ratio`.

    Source: VAFL, appendix G; V-02, V-03.
    """
    settings: dict[str, list[Any]] = {
        f"Poisson(2m)/(2M), M = {M}": [
            theory.Lattice(stats.poisson(2 * m), 1 / (2 * M)) for m in range(1, M + 1)
        ]
        for M in (3, 7, 8)
    }
    settings["exponential, mean m, M = 4"] = [stats.expon(scale=m) for m in range(1, 5)]
    settings["exponential, rate m, M = 4"] = [
        stats.expon(scale=1 / m) for m in range(1, 5)
    ]
    rows = []
    for setting, laws in settings.items():
        rate = theory.throughput(laws)
        rows.append(
            {
                "setting": setting,
                "num_clients": len(laws),
                "expected_maximum": len(laws) / rate.synchronous,
                "synchronous": rate.synchronous,
                "asynchronous": rate.asynchronous,
                "ratio": rate.ratio,
            }
        )
    return pd.DataFrame(rows)


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


def stage_table(stages: Sequence[Any], num_stages: int = 11) -> pd.DataFrame:
    """Tabulates MAPA's stages: formulas, beside what the simulator does.

    Args:
        stages: of the simulator with the same constants, as
            `simulator.algorithms.stages.stages` returns them.
        num_stages: rows.

    Returns:
        One row per stage: `stage`, `sensitivity`, `clip_bound`, `variance` (Delta_b),
        `divisor` (P), `step_size` and `length` (T_s) by theory; `simulated_step` and
        `iterations` of the simulator, "-" in the last row, which it does not end.

    Source: MAPA, Algorithm 1, equations 12, 15 and 16.
    """
    rows, before = [], 0
    for number, (mine, own) in enumerate(
        zip(_stages()[:num_stages], stages, strict=False), 1
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
    """Tabulates the three noise laws of MAPA at scale 1, and what they keep private.

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


def _stages() -> list[mapa.Stage]:
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
