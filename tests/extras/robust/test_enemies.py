"""Attacks and robust servers against their blind twins, and what theory says."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.federated.stage import in_program
from stalesim.simulator.engine.kernel import ANSWER
from stalesim.simulator.extras.robust.enemies import SignFlip
from stalesim.simulator.files.timeline import NO_WORKER
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.study import merge
from tests.extras.robust import twin
from tests.reference.methods_support import (
    BASE,
    SEED,
    assert_like_twin,
    problem_of,
    tree_of,
)
from tests.reference.server_twin import STAGES
from tests.runs import execute, prepared
from tests.support import SGD, scenario
from tests.unit.algorithms.test_chain import row

ROUNDS, BUFFER = {"kind": "synchronous"}, {"kind": "buffered", "size": 5}
EACH = {"kind": "asynchronous"}
TWO = {"clients": [2, 5]}
FLIP = {"kind": "sign_flip", **TWO, "factor": 4.0}
FLIPS = {"kind": "sign_flip"}
ALIE = {"kind": "alie", **TWO, "deviations": 1.5}
TURN = {"kind": "inner_product", **TWO, "factor": 2.0}
MEDIAN = {"kind": "coordinate_median"}
TRIMMED = {"kind": "trimmed_mean", "tolerated": 2}
KRUM = {"kind": "krum", "tolerated": 1}
MULTI = {"kind": "krum", "tolerated": 1, "selected": 3}
POINT = {"kind": "geometric_median", "iterations": 5, "smoothing": 1e-4}
CLIP = {"kind": "centred_clipping", "radius": 0.8, "iterations": 2}
MOMENTUM = {"kind": "centred_clipping", "radius": 0.8, "rate": 0.3}


def chain(
    *received: dict[str, Any],
    by: dict[str, Any] | None = None,
    weight: dict[str, Any] | None = None,
    work: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a chain of some stages of receiving, and an aggregation."""
    weigh = {"kind": "weigh"} | ({"weight": weight} if weight else {})
    stages = [work or {"kind": "local_work"}, *received, weigh, by or {"kind": "mean"}]
    own = {"kind": "chained", "chain": [*stages, {"kind": "step"}]}
    return BASE["algorithm"] | own


HALF = {"kind": "polynomial", "exponent": 0.5}
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flip, mean, rounds": (ROUNDS, chain(FLIP)),
    "flip, median, rounds": (ROUNDS, chain(FLIP, by=MEDIAN)),
    "alie, trimmed, rounds": (ROUNDS, chain(ALIE, by=TRIMMED)),
    "turn, krum, rounds": (ROUNDS, chain(TURN, by=KRUM)),
    "flip, clipping, rounds": (ROUNDS, chain(FLIP, by=CLIP)),
    "flip and alie, mean, buffers": (
        BUFFER,
        chain(FLIP | {"clients": [4]}, ALIE | {"clients": [2]}),
    ),
    "alie, median, buffers": (BUFFER, chain(ALIE, by=MEDIAN, weight=HALF)),
    "turn, trimmed, buffers": (BUFFER, chain(TURN, by=TRIMMED)),
    "flip, multi-krum, buffers": (BUFFER, chain(FLIP, by=MULTI, weight=HALF)),
    "flip, geometric median, buffers": (BUFFER, chain(FLIP, by=POINT)),
    "flip, clipping, one by one": (EACH, chain(FLIP, by=MOMENTUM)),
    "BASGD": (EACH, chain(FLIP, by=MEDIAN | {"buckets": 4})),
}
"""Clients 2 and 5 of five are enemies, or of two attacks 4 and 2."""


@pytest.mark.parametrize("name", METHODS)
def test_numbers_are_those_of_the_twin(name: str) -> None:
    tree = tree_of(*METHODS[name], stop={"commits": 40})
    assert_like_twin(tree, stages=STAGES | twin.stages_of())


def test_runs_of_other_enemies_share_a_program() -> None:
    """Two runs of one timeline, whose enemies differ, give what each gives alone."""
    other = chain({"kind": "sign_flip", "share": 0.4, "factor": 4.0})
    trees = [
        tree_of(ROUNDS, each, stop={"commits": 9}) for each in (chain(FLIP), other)
    ]
    with jax.enable_x64(True):
        runs = [prepared(tree, seed=SEED, number=n) for n, tree in enumerate(trees)]
        together = execute(runs, "shared")[0]
        alone = [execute([run])[0] for run in runs]
    for number, one in enumerate(alone):
        found, wanted = (
            memory.column("evaluations", "objective", number)
            for memory in (together, one)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("protocol", [ROUNDS, BUFFER], ids=lambda p: p["kind"])
def test_a_trimmed_mean_that_trims_nothing_is_the_mean(protocol: Any) -> None:
    """With local steps, staleness weights, Adam and a step size of the server's."""
    ends = []
    for by in ({"kind": "mean"}, TRIMMED | {"tolerated": 0}):
        tree = chain({"kind": "as_moves"}, by=by, weight=HALF)
        tree["chain"][0] = {"kind": "local_work", "local_steps": 3}
        adam = {"kind": "optimise", "optimizer": {"kind": "adam"}}
        server = [{"kind": "scale_by_weight"}, adam, {"kind": "step", "step_size": 0.1}]
        tree["chain"][-1:] = server
        with jax.enable_x64(True):
            change = {"protocol": protocol, "algorithm": tree, "stop": {"commits": 20}}
            run = prepared(merge(BASE, change), seed=SEED)
            ends.append(execute([run])[0].column("evaluations", "objective"))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)


def test_the_table_of_clients_says_who_attacks_how() -> None:
    received = FLIP | {"clients": [3]}, TURN
    tree = {"protocol": ROUNDS, "algorithm": chain(*received), "stop": {"commits": 2}}
    memory, _ = execute([prepared(merge(BASE, tree), seed=SEED)])
    roles = memory.tables["clients"][0]["role"]
    assert [roles.words[code] for code in roles.codes] == [
        "",
        "inner_product",
        "sign_flip",
        "",
        "inner_product",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_enemies_of_a_smaller_share_are_among_those_of_a_larger(seed: int) -> None:
    found = []
    for share in (0.0, 0.1, 0.3, 0.45):
        method = scenario(merge(BASE, {"algorithm": chain(FLIPS | {"share": share})}))
        (attack,) = (s for s in method.algorithm.stages if isinstance(s, SignFlip))
        found.append(attack.among(method.algorithm, 20, seed))
    assert [flags.sum() for flags in found] == [0, 2, 6, 9]
    for fewer, more in pairwise(found):
        assert (more >= fewer).all()


def stage(config: dict[str, Any]) -> Any:
    """Returns the function of vectors that a robust aggregation is."""
    tree = merge(BASE, {"protocol": ROUNDS, "algorithm": chain(by=config)})
    run = prepared(tree)
    made = in_program(run.scenario.algorithm.stages[-2])
    there = jnp.ones(7, bool)

    def aggregate(vectors: np.ndarray) -> np.ndarray:
        sent = jnp.asarray(vectors)
        return np.asarray(made.aggregate(sent, there, made.first(sent[0]))[0])

    return aggregate


VECTORS = np.random.default_rng(3).normal(size=(7, 4))
"""Seven vectors, of which the first are replaced by an enemy's."""


@pytest.mark.parametrize(
    ("config", "tolerated"),
    [
        (MEDIAN, 3),
        (TRIMMED, 2),
        ({"kind": "geometric_median", "iterations": 60}, 3),
        (KRUM, 1),
        (KRUM | {"tolerated": 1, "selected": 2}, 1),
        ({"kind": "centred_clipping", "radius": 1.0}, 7),
    ],
    ids=lambda value: value if isinstance(value, int) else value["kind"],
)
def test_breakdown(config: dict[str, Any], tolerated: int) -> None:
    """Up to so many of 7 vectors may be anything; one more decides the result.

    Up to floor((n - 1) / 2) for medians, f for a trimmed mean; of clipping nothing
    moves further than its radius, whoever sends it.
    """
    aggregate, spread = stage(config), np.abs(VECTORS).max()
    sent = VECTORS.copy()
    for number in range(tolerated + 1):
        sent[:number] = 1e6
        assert np.abs(aggregate(sent)).max() <= 2 * spread, number
    if tolerated < 7:
        # Krum is fooled by as many as there are neighbours: f = 1 bears no 5 of 7.
        sent[: {1: 5}.get(tolerated, tolerated + 1)] = 1e6
        assert np.abs(aggregate(sent)).max() > 1e5


def test_one_enemy_moves_a_mean_as_far_as_it_likes() -> None:
    far = {"kind": "sign_flip", "clients": [1], "factor": 100.0}
    ends = []
    for by in ({"kind": "mean"}, MEDIAN):
        tree = {"algorithm": chain(far, by=by), "stop": {"commits": 15}}
        run = prepared(merge(BASE, {"protocol": ROUNDS} | tree), seed=SEED)
        ends.append(execute([run])[0].column("evaluations", "optimality_gap"))
    mean, median = ends
    assert not mean[-1] < 1e3 * mean[0]
    assert median[-1] < median[0]


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        (
            {"protocol": EACH, "algorithm": chain(by=MEDIAN)},
            "must get at least 3 contributions per commit, got 1; wait for more",
        ),
        (
            {"protocol": BUFFER, "algorithm": chain(by=KRUM | {"tolerated": 2})},
            "'krum' must get at least 7 contributions per commit, got 5",
        ),
        (
            {
                "protocol": {"kind": "buffered", "window": 2.0},
                "algorithm": chain(by=MEDIAN),
            },
            "must have a fixed number of contributions per commit",
        ),
        (
            {"algorithm": chain({"kind": "sign_flip", "clients": [6]})},
            "must name clients from 1 to 5, got 6; change its clients",
        ),
        (
            {"algorithm": chain(work={"kind": "label_flip", "share": 0.2})},
            "must have another work than label_flip for data without classes",
        ),
        (
            {"protocol": EACH, "algorithm": chain(by=MEDIAN | {"buckets": 6})},
            "must have at most 5 buckets, one for each client, got 6",
        ),
        (
            {
                "protocol": {
                    "kind": "buffered",
                    "size": {"values": [2, 5], "commits": [9]},
                },
                "algorithm": chain(by=MEDIAN),
            },
            "must get at least 3 contributions per commit, got 2; wait for more",
        ),
    ],
)
def test_what_bears_no_enemy_is_refused_before_the_first_row(
    tree: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        prepared(merge(BASE, tree), seed=SEED)


def digits(**changes: Any) -> dict[str, Any]:
    """Returns a run of rounds on handwritten digits in double precision."""
    seen = {"every": {"commits": 2}, "metrics": BASE["evaluate"]["metrics"][:2]}
    usual = {"engine": {"precision": "float64"}, "stop": {"commits": 6}}
    tree = merge(SGD | {"algorithm": None, "protocol": ROUNDS}, usual)
    return merge(tree, {"evaluate": seen} | changes)


def test_labels_of_enemies_alone_are_flipped() -> None:
    work = {"kind": "label_flip", "clients": [2, 4]}
    tree = digits(algorithm=chain(work=work) | {"batch": 11})
    with jax.enable_x64(True):
        problem = problem_of(prepared(tree))
    flipped = problem._replace(labels=9 - problem.labels)
    theirs = twin.poisoned(flipped, (2, 4))
    stages = STAGES | {"label_flip": ("arrival", lambda **_: theirs)}
    assert_like_twin(tree, stages=stages)


def test_attacks_with_shares_draw_clients_that_have_no_other() -> None:
    stages = (
        {"kind": "sign_flip", "share": 0.3},
        {"kind": "alie", "clients": [3, 4], "deviations": 1.0},
        {"kind": "inner_product", "share": 0.5, "factor": 1.0},
    )
    found = scenario(merge(BASE, {"algorithm": chain(*stages)})).algorithm
    for seed in range(4):
        words = found.roles(10, seed)
        assert sorted(words) == [*["alie"] * 2, *["inner_product"] * 5] + (
            ["sign_flip"] * 3
        )
        assert words[2:4] == ("alie", "alie")
    with pytest.raises(ScenarioError, match="on at most 7 clients together, got 8"):
        found.roles(7, 1)


def test_a_world_hears_the_norms_of_what_enemies_send() -> None:
    with jax.enable_x64(True):
        run = prepared(merge(BASE, {"protocol": ROUNDS, "algorithm": chain(FLIP)}))
        kernel: Any = replace(run.kernel, asks=("norms",))
        state, event = kernel.init(run.problem, jax.random.key(0)), row(*range(5))
        event = event._replace(samples=jnp.arange(10, dtype=jnp.int32).reshape(5, 2))
        honest = kernel.reveal(run.problem, state, event)["message"]
        _, info = kernel.step(run.problem, state, event)
    lengths = np.linalg.norm(np.asarray(honest), axis=1) * [1, 4, 1, 1, 4]
    np.testing.assert_allclose(info[f"{ANSWER}norms"], lengths, rtol=1e-9)


def test_a_commit_of_too_few_makes_no_step_and_has_weight_0() -> None:
    moved, weights = [], []
    with jax.enable_x64(True):
        run = prepared(merge(BASE, {"protocol": ROUNDS, "algorithm": chain(by=MEDIAN)}))
        kernel: Any = run.kernel
        state = kernel.init(run.problem, jax.random.key(0))
        samples = jnp.arange(10, dtype=jnp.int32).reshape(5, 2)
        for present in (2, 3):
            event = row(*range(present), *[NO_WORKER] * (5 - present))
            event = event._replace(samples=samples)
            after, info = kernel.step(run.problem, state, event)
            moved.append(bool((after.weights != state.weights).any()))
            weights.append(float(info["weight"]))
    assert moved == [False, True]
    assert weights == [0.0, 1.0]


def test_an_enemy_that_is_late_on_purpose_is_staler() -> None:
    """Its jobs take 9 times as long: others make 9 times as many commits in one."""
    late = {"slowdowns": [{"kind": "named", "clients": [2], "factor": 9.0}]}
    means = []
    for slowdowns in ({}, late):
        clients = {"compute": {"law": "constant", "value": 1.0}} | slowdowns
        tree = {"protocol": EACH, "clients": clients, "stop": {"commits": 600}}
        algorithm = {"algorithm": chain(FLIP | {"clients": [2]})}
        memory, _ = execute([prepared(merge(BASE, tree | algorithm), seed=SEED)])
        means.append(memory.column("clients", "staleness_mean")[1])
    assert means[0] == pytest.approx(4, abs=0.1)
    assert means[1] == pytest.approx(36, abs=1)
