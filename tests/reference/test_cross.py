"""Methods of different papers that must be one: the studies of scenarios/cross.

The sides of each study are run and compared evaluation by evaluation. They take their
sums in different orders, so they agree to rounding: each of at most 200 rows errs by a
few 1e-16 of numbers of order 1, and none of these problems amplifies errors. `NEAR` is
a thousand times that. What must not agree is told apart by at least `FAR`.
"""

from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import expand, merge
from tests.runs import execute

FOLDER = Path(__file__).parents[2] / "scenarios" / "cross"
NEAR, FAR = 2e-12, 1e-6
CONSTANT = 2e-11
"""Of what has a constant of 1e-12 or 1e-13 in the place of a zero."""
Curves = dict[str, np.ndarray]


@cache
def study(name: str) -> Scenario:
    scenario = read_any(FOLDER / f"{name}.yaml")
    assert isinstance(scenario, Scenario)
    return scenario


@cache
def side(name: str, variant: str) -> Curves:
    """Returns the evaluations of a variant's first replicate."""
    return run(name, variant, {})


def run(name: str, variant: str, changes: dict[str, Any]) -> Curves:
    """Returns the evaluations of a variant with entries replaced."""
    scenario = study(name)
    varied = merge(scenario.variants[variant], changes, nulls_remove=False)
    tree = scenario.model_dump(mode="json")
    tree |= {"variants": {variant: varied}, "claims": (), "replicates": 1}
    (only,) = expand(Scenario.model_validate(tree))
    with jax.enable_x64(True):
        memory, _ = execute([prepare(only)])
    metrics = scenario.evaluate.metrics
    return {name: memory.column("evaluations", name) for name in metrics}


def distance(one: Curves, other: Curves, *but: str) -> float:
    """Returns the largest relative difference in any metric of any evaluation."""
    assert one.keys() == other.keys()
    return max(
        float(np.max(np.abs(values - other[name]) / np.abs(other[name])))
        for name, values in one.items()
        if name not in but
    )


NORM = "gradient_norm_squared"
VAFL, SYNC, AUDP, BCD, MAPA = (
    *("vafl_equals_fedsgd", "adpsgd_equals_sync", "audp_limits"),
    *("fedbcd_limits", "mapa_limits"),
)
SLOW = pytest.mark.slow
EQUAL = [
    (VAFL, "vafl", "fedsgd", NEAR),
    pytest.param(VAFL, "vafl-bias", "sgd", NEAR, marks=SLOW),
    pytest.param(VAFL, "vafl-all", "fedsgd", NEAR, marks=SLOW),
    pytest.param(VAFL, "sync", "fedsgd", NEAR, marks=SLOW),
    (SYNC, "adpsgd", "sync", NEAR),
    (SYNC, "adp2sgd", "sync-private", NEAR),
    pytest.param(SYNC, "adpsgd-complete", "sync", NEAR, marks=SLOW),
    pytest.param(SYNC, "adp2sgd-complete", "sync-private", NEAR, marks=SLOW),
    (AUDP, "audp", "asgd", NEAR),
    (AUDP, "audp-constant", "asgd-table", CONSTANT),
    pytest.param(AUDP, "audp-one", "csgd", NEAR, marks=SLOW),
    pytest.param(AUDP, "asgd-one", "csgd-table", NEAR, marks=SLOW),
    (BCD, "bcd-1", "fedsgd", NEAR),
    (BCD, "pbcd-0", "bcd-5", NEAR),
    pytest.param(BCD, "pbcd-tiny", "bcd-5", CONSTANT, marks=SLOW),
    pytest.param(BCD, "bcd-1-frozen", "fedsgd", NEAR, marks=SLOW),
    (MAPA, "mapa", "audp", NEAR),
    pytest.param(MAPA, "mapa-sample", "audp-sample", NEAR, marks=SLOW),
]


@pytest.mark.parametrize(("name", "one", "other", "near"), EQUAL)
def test_sides_agree_evaluation_by_evaluation(
    name: str, one: str, other: str, near: float
) -> None:
    first, second = side(name, one), side(name, other)
    # VAFL's gradient has a part of the server model, which FedSGD does not have.
    but = (NORM,) if other == "fedsgd" and name == VAFL else ()
    assert distance(first, second, *but) < near
    objective = first["objective"]
    assert objective.size > 50  # one at the start, one after every commit or round
    assert len(np.unique(objective)) == objective.size


def test_every_claim_is_about_sides_that_are_compared_here() -> None:
    compared = {tuple(getattr(p, "values", p))[:3] for p in EQUAL}
    for path in FOLDER.glob("*.yaml"):
        claims = study(path.stem).claims
        assert claims
        pairs = {(path.stem, claim.close, claim.than) for claim in claims}
        assert pairs <= compared


DIFFERENT: list[tuple[str, str, dict[str, Any], str]] = [
    # Section 3 of VAFL: t = M is not synchronous, unless samples are coordinated.
    (VAFL, "vafl", {"algorithm": {"samples": "own"}}, "fedsgd"),
    (SYNC, "adp2sgd", {"algorithm": {"noise": {"sigma": 1.0001}}}, "sync-private"),
    (AUDP, "audp", {"algorithm": {"clip_bound": 0.5}}, "asgd"),
    (AUDP, "asgd-table", {"algorithm": {"sigma": 1e-4}}, "audp-constant"),
    # Of one edge, eq. 10 has other steps than CSGD: like it means at its rate.
    (AUDP, "audp-one", {"algorithm": {"step_size": None}}, "csgd-table"),
    (BCD, "pbcd-tiny", {"algorithm": {"proximal": 1e-4}}, "bcd-5"),
    (MAPA, "mapa", {"algorithm": {"theta": 0.99999}}, "audp"),
]


@pytest.mark.parametrize(("name", "one", "changes", "other"), DIFFERENT)
def test_what_is_not_the_same_is_told_apart(
    name: str, one: str, changes: dict[str, Any], other: str
) -> None:
    changed = run(name, one, changes)
    assert distance(changed, side(name, other), NORM) > FAR


def rate(t: int, *, curvature: float) -> float:
    """Returns Table II's step of ASGD or CSGD: sigma 30, b 12, R 1."""
    return 1 / (curvature + 30 * sqrt(t + 1) / sqrt(12))


def by_commits(name: str, variant: str, steps: list[float]) -> Curves:
    """Returns the evaluations of a variant that is given the step of every commit."""
    scenario = study(name)
    with jax.enable_x64(True):
        whole = next(r for r in expand(scenario) if r.variant == variant)
        an_epoch = prepare(whole).timeline.commits_per_epoch
    # A step begins half a commit early, so that no rounding puts it off.
    epochs = [(k - 0.5) / an_epoch for k in range(1, len(steps))]
    rule = {"kind": "piecewise", "values": steps, "epochs": epochs}
    stop = {"commits": len(steps)}
    return run(name, variant, {"algorithm": {"step_size": rule}, "stop": stop})


TABLE = {
    # tau_max = K = 5 of the formulas (M-08), L = 10
    "asgd": ("audp", {"kind": "asgd"}, 10 * (5 + 1) ** 2),
    # One edge, and the pooled data: the same commits, of staleness 0.
    "csgd": ("audp-one", {"kind": "csgd"}, 10),
}


@pytest.mark.parametrize("kind", TABLE)
def test_audp_at_the_rate_of_table_2(kind: str) -> None:
    variant, plain, curvature = TABLE[kind]
    steps = [rate(t, curvature=curvature) for t in range(1, 61)]
    private = by_commits(AUDP, variant, steps)
    own = plain | {"step_size": None}
    public = run(AUDP, kind, {"algorithm": own, "stop": {"commits": len(steps)}})
    assert distance(private, public) < NEAR


def test_mapa_without_the_clamp_of_its_divisor() -> None:
    """P exceeds 1 at a smaller epsilon; the step is eq. 13's, and stages are 1 long."""
    batch, sigma, scale, longest = 12, 30.0, 2 * 15.0 / 12, 5
    variance = sigma**2 / batch + 2 * (scale / 0.1) ** 2
    divisor = 8 * variance / (longest * (batch * scale) ** 2)
    assert divisor > 2
    loud = {"epsilon": 0.1, "gap": 0.1}
    mapa = run(MAPA, "mapa", {"algorithm": loud})
    step = 1 / (2 * divisor * 5.0 * longest)
    audp = run(MAPA, "audp", {"algorithm": {"epsilon": 0.1, "step_size": step}})
    assert distance(mapa, audp) < NEAR
