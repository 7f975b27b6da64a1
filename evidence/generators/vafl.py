"""Tables of VAFL: its formulas of privacy, smoothing and throughput in numbers."""

from collections.abc import Sequence
from typing import Any, get_args

import pandas as pd
from scipy import stats

from stalesim.analysis import theory
from stalesim.simulator.privacy import gdp

from ..theory.smoothing import theorem5
from . import roughness

FORMS = get_args(gdp.Form)


def gdp_table(
    *,
    mus: Sequence[float] = (0.5, 1.0, 2.0),
    releases: Sequence[int] = (100, 1_000, 10_000, 100_000),
    sampling_ratios: Sequence[float] = (0.01, 1.0),
    delta: float = 1e-5,
) -> pd.DataFrame:
    """Tabulates the noise multiplier that a privacy target needs.

    Args:
        mus: targets.
        releases: K.
        sampling_ratios: p.
        delta: delta of the column epsilon.

    Returns:
        One row per (mu, K, p): `mu`, `epsilon`, `releases`, `sampling_ratio`, and z by
        each form in a column of the form's name.

    Source: VAFL, equation 15 with V-18.
    """
    return pd.DataFrame(
        [
            {
                "mu": mu,
                "epsilon": gdp.epsilon(mu, delta),
                "releases": count,
                "sampling_ratio": ratio,
                **{
                    form: gdp.noise_multiplier(mu, count, ratio, form) for form in FORMS
                },
            }
            for ratio in sampling_ratios
            for count in releases
            for mu in mus
        ]
    )


def smoothing_table(
    *,
    cs: Sequence[float] = (0.1, 0.3, 1.0),
    hidden_cs: Sequence[float] = (0.1, 0.3, 1.0),
    width: int = 4,
    num_draws: int = 20_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Tabulates Theorem 5's constants and measures of a three-layer ReLU embedding.

    Args:
        cs: standard deviations of the last layer's noise.
        hidden_cs: standard deviations of the other layers' noise.
        width: width of every layer.
        num_draws: draws of the measurement.
        seed: seed of the measurement.

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
        longest = theory.expected_maximum(laws)
        free = theory.asynchronous_throughput([law.mean() for law in laws])
        row = {
            "setting": setting,
            "num_clients": len(laws),
            "expected_maximum": longest,
        }
        row |= {"synchronous": len(laws) / longest, "asynchronous": free}
        rows.append(row | {"ratio": free / row["synchronous"]})
    return pd.DataFrame(rows)
