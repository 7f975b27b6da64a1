"""Compression against published convergence, on quadratics of known optimum."""

from typing import Any

import jax
import numpy as np
import pytest

from tests.runs import execute, prepared

K, d, CONDITION, APART = 8, 12, 10.0, 2.0
"""Clients, weights, L / mu with L = 1, and distance of clients' optima from the mean"""
UNBIASED = {"qsgd": {"levels": 2}, "random_k": {"keep": 3}}
BIASED = {"top_k": {"keep": 3}, "signs": {}}
OMEGA = {"qsgd": d**0.5 / 2, "random_k": d / 3 - 1}
ALPHA = {"top_k": 3 / d, "signs": 1 / d} | {k: 1 / (1 + w) for k, w in OMEGA.items()}
"""Least contraction: by the papers, and for signs by |x|_1 >= |x|."""


def gaps(
    kind: str | None,
    feedback: str | None,
    step: float,
    commits: int,
    *,
    every: int,
    down: bool = False,
    seed: int = 3,
    **data: Any,
) -> np.ndarray:
    """Returns f - f* of every so many commits of rounds of all clients."""
    options = {"kind": kind, **(UNBIASED | BIASED).get(kind or "", {})}
    compress = {"kind": "compress", "compressor": options, "feedback": feedback}
    broadcast = {"kind": "broadcast", "compressor": options}
    chain = [
        *([broadcast] if down else []),
        {"kind": "local_work"},
        *([compress] if kind else []),
        *({"kind": name} for name in ("weigh", "mean", "step")),
    ]
    quadratic = {"kind": "quadratic", "clients": K, "dimension": d}
    tree = {
        "problem": {
            "data": {**quadratic, "heterogeneity": APART, **data},
            "partition": {"kind": "natural", "clients": K},
            "model": {"kind": "diagonal"},
            "loss": "squared",
            "l2": 0.0,
        },
        "clients": {"compute": {"law": "constant", "value": 1.0}},
        "protocol": {"kind": "synchronous"},
        "algorithm": {"kind": "chained", "step_size": step, "batch": 1, "chain": chain},
        "engine": {"precision": "float64"},
        "stop": {"commits": commits},
        "evaluate": {"every": {"commits": every}, "metrics": ["optimality_gap"]},
    }
    with jax.enable_x64(True):
        memory, _ = execute([prepared(tree, seed=seed)])
    return memory.column("evaluations", "optimality_gap")


def ef21(alpha: float) -> tuple[float, float]:
    """Returns the largest step of EF21's theorem for PL functions, and theta.

    Source: Richtarik, Sokolov and Fatkhullin, EF21 (2021), Theorem 2, with L = 1; step,
    theta, beta and rate as a public summary of the paper has them (November 2026).
    """
    theta = 1 - (1 - alpha) ** 0.5
    beta = (1 - alpha) / theta
    step = min(1 / (1 + (2 * beta / theta) ** 0.5), theta * CONDITION / 2)
    return step, theta


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALPHA)
def test_ef21_converges_as_its_theorem_says_where_bias_alone_stalls(kind: str) -> None:
    alpha, commits = ALPHA[kind], 3000
    step, theta = ef21(alpha)
    data: dict[str, Any] = {"condition": CONDITION, "distance": 3.0}
    found = gaps(kind, "ef21", step, commits, every=100, **data)
    # Clients' gradients at the start are a_j b_ij <= |b_i|, of which 1 - alpha is left.
    squares = APART**2 + 3.0**2
    first = found[0] + step / theta * (1 - alpha) * squares
    bound = first * (1 - step / CONDITION) ** np.arange(0, commits + 1, 100)
    assert (found <= bound + 1e-14).all()
    assert found[-1] < 1e-3 * found[0]
    if kind in BIASED:
        both = gaps(kind, "ef21", step, commits, every=100, down=True, **data)
        assert both[-1] < 1e-3 * found[0]
        alone = gaps(kind, "none", step, commits, every=100, **data)
        late = alone[len(alone) // 2 :]
        assert late.min() > 0.5 * late.max(), "it has stopped"
        assert late.min() > 1e3 * found[-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", BIASED)
def test_error_feedback_reaches_what_sgd_reaches(kind: str) -> None:
    """The leading term, step noise^2, is SGD's; errors add one of the step's square.

    Source: Stich, Cordonnier and Jaggi (2018), Theorem 2.4; Karimireddy et al. (2019),
    Theorem II.
    """
    data: dict[str, Any] = {"condition": CONDITION, "noise": 2.0, "samples": 64}
    plain, memory, alone = (
        gaps(*case, 0.02, 8000, every=10, **data)[400:].mean()
        for case in ((None, None), (kind, "ef"), (kind, "none"))
    )
    assert memory == pytest.approx(plain, rel=0.1)
    assert alone > 2 * plain


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNBIASED)
def test_random_k_adds_its_variance_and_qsgd_no_more(kind: str) -> None:
    """x' = x - step mean C(g_i), g_i = x - b_i: |x - x*|^2 has a recursion.

    E D' = ((1 - step)^2 + step^2 omega / K) D + step^2 omega apart^2 / K, since errors
    of clients are independent, of mean zero and of square omega |g_i|^2.
    """
    step, omega = 0.2, OMEGA[kind]
    wanted = step * omega * APART**2 / K / (2 - step - step * omega / K)
    found = 2 * gaps(kind, "none", step, 40_000, every=5)[200:]
    parts = found[: found.size // 40 * 40].reshape(40, -1).mean(axis=1)
    error = parts.std(ddof=1) / 40**0.5
    assert found.mean() <= wanted + 5 * error
    if kind == "random_k":  # whose bound is an equality
        assert abs(found.mean() - wanted) <= 5 * error
