"""Conditions and numbers of `scenarios/adp2sgd/theory_bound.yaml` (Proposition 1)."""

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from evidence.theory import adp2sgd, pairings
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.scenario.synonyms import Synonyms
from tests.runs import execute
from tests.support import everything

FILE = Path(__file__).parents[2] / "scenarios/adp2sgd/theory_bound.yaml"
TEXT = Synonyms(Scenario).replaced(yaml.safe_load(FILE.read_text()))
NOT_OF_A_RUN = ("variants", "claims", "replicates", "source", "question")
BASE = {key: value for key, value in TEXT.items() if key not in NOT_OF_A_RUN}
BATCH, SIGMA, WITHIN, ACROSS, SMOOTHNESS = 8, 1, 42.6, 0.05, 0.57


def plan_of(seed: int, commits: int = 5000) -> Prepared:
    tree = merge(BASE, {"stop": {"commits": commits}})
    return prepare(Run(0, "base", {}, 0, seed, Scenario.model_validate(tree)))


def workers_of(plan: Prepared) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns features with a column of ones, and labels, of each worker's share."""
    data, pools = plan.shares.data, plan.shares.pools
    x = np.c_[data.x_train, np.ones(len(data.x_train))].astype(np.float64)
    return [(x[pool], data.y_train[pool]) for pool in pools]


def gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    odds = np.exp(x @ w.T)
    error = odds / odds.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1
    return error.T @ x / len(y)


def test_the_bounds_of_the_file_are_those_of_the_proposition() -> None:
    for claim in TEXT["claims"][:4]:
        horizon = int(claim["below"].removeprefix("t-"))
        variant = TEXT["variants"][claim["below"]]
        stop = variant.get("stop", TEXT["stop"])
        assert stop["commits"] == horizon
        bound = adp2sgd.proposition1_bound(
            horizon,
            batch=BATCH,
            smoothness=SMOOTHNESS,
            gap=math.log(2),
            within=WITHIN,
            across=ACROSS,
            dimension=42,
            sigma=SIGMA,
        )
        assert claim["bound"] <= bound
        assert claim["bound"] == pytest.approx(bound, rel=1e-3)
    algorithm = TEXT["algorithm"]
    assert (algorithm["batch"], algorithm["noise"]) == (BATCH, {"sigma": SIGMA})
    # On the sum K / (B sqrt(T)), on the mean K / sqrt(T).
    step = adp2sgd.proposition1_step(5000, num_workers=2, batch=BATCH)
    assert algorithm["step_size"]["value"] / math.sqrt(5000) == pytest.approx(
        step * BATCH
    )


def test_the_hypothesis_is_met() -> None:
    plan = plan_of(5, 1000)
    rows, _, _ = everything(plan.timeline)
    commits = rows.kind == Kind.COMMIT
    staleness = (rows.version - rows.read_version[:, 0])[commits]
    assert staleness.max() == 1
    assert (rows.kind == Kind.AVERAGE).sum() == commits.sum()  # of both, every time
    rho_bar = pairings.rho_bar(0.0, 2)
    assert rho_bar == 0.5
    shares = workers_of(plan)
    x = np.concatenate([x for x, _ in shares])
    smoothness = np.linalg.eigvalsh(x.T @ x / len(x)).max() / 2
    assert smoothness <= SMOOTHNESS
    least = adp2sgd.proposition1_threshold(
        num_workers=2, smoothness=SMOOTHNESS, staleness=1, rho_bar=rho_bar
    )
    assert least.iterations < 1401


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_constants_bound_what_is_met_on_the_way(seed: int) -> None:
    """Within: |g| <= sqrt(2) |x| for two logits. Across: measured along the way."""
    shares = workers_of(plan_of(seed))
    for x, _ in shares:
        assert 2 * np.square(x).sum(axis=1).mean() <= WITHIN
    rng = np.random.default_rng(seed)
    w, eta, across = np.zeros((2, 21)), 2 / math.sqrt(5000), 0.0
    for t in range(2500):  # one model: the workers' are averaged after every step
        if t % 50 == 0:
            of = [gradient(w, *share) for share in shares]
            across = max(across, np.square(of[0] - of[1]).sum() / 4)
        steps = np.zeros_like(w)
        for x, y in shares:
            rows = rng.choice(len(y), BATCH, replace=False)
            noise = SIGMA / BATCH * rng.normal(size=w.shape)
            steps += gradient(w, x[rows], y[rows]) + noise
        w = w - eta * steps / 2
    assert 0 < across < 0.4 * ACROSS


def test_a_short_run_obeys_the_bound() -> None:
    memory, _ = execute([plan_of(5)])
    values = memory.column("evaluations", "gradient_norm_squared")
    assert np.mean(values) < TEXT["claims"][0]["bound"]
