"""VAFL's kernel with networks at parties and server, against the twin and itself.

Both compute in float64; a run of 20 commits adds some 1e4 terms of order one, in
another order: 1e-9 relative, as of all twins (docs/design.md, "How it is checked").
"""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.vafl import smoothed
from stalesim.simulator.catalogue.algorithms.vafl.noise import AT_START, draw, inside
from stalesim.simulator.engine.optimizers.arrays import arrays_of
from stalesim.simulator.engine.simulation import Prepared, key_of
from stalesim.simulator.files.timeline import NO_WORKER
from stalesim.simulator.problem.models.flat import split
from stalesim.simulator.problem.models.party import hidden_shapes
from tests.reference import vafl_twin as twin
from tests.reference.gossip_support import ran
from tests.reference.layers_twin import Chain, Layer, Linear
from tests.runs import prepared, rows_of
from tests.support import SGD

HIDDEN, WIDTH, OVER = 7, 5, 6
"""Units of a party's hidden layer, of its embedding, and of the server's layer."""
BASE = {
    "engine": {"precision": "float64"},
    "stop": {"commits": 20},
    "problem": {
        "data": {"kind": "digits", "scale": "unit", "limit": 60},
        "partition": {"kind": "vertical", "parties": 4},
        "model": {"kind": "dense", "hidden": [HIDDEN]},
        "server": {"width": WIDTH, "combine": "concat", "hidden": [OVER]},
        "l2": 0.01,
    },
    "algorithm": {
        "kind": "vafl",
        "batch": 8,
        "step_size": 0.2,
        "server_step_size": 0.05,
        "upload": "batch",
    },
}
NOISY = {"std": 0.3, "hidden": {"uniform": [0.2]}}
OWN_SERVER = {
    "build": "tests.own_models:server",
    # Without the options of the network whose place it takes.
    "combine": None,
    "hidden": None,
}
CASES: dict[str, dict[str, Any]] = {
    "async": {},
    "async all": {"algorithm": {"upload": "all"}},
    "nothing stale": {"algorithm": {"upload": "current"}},
    "nothing stale, t-sync": {
        "algorithm": {"upload": "current"},
        "protocol": {"kind": "t_synchronous", "t": 2},
    },
    "t-sync": {"protocol": {"kind": "t_synchronous", "t": 2}},
    "sync": {"protocol": {"kind": "synchronous"}},
    "weighted views": {
        "problem": {"server": {"combine": "weighted_sum", "views": 2}},
        "protocol": {"kind": "t_synchronous", "t": 3},
    },
    "sum": {"problem": {"server": {"combine": "sum"}}},
    "narrow parties": {"problem": {"partition": {"parties": 3}}},
    "own server": {"problem": {"server": OWN_SERVER}},
    "own server of views, t-sync": {
        "problem": {"server": {**OWN_SERVER, "views": 2}},
        "protocol": {"kind": "t_synchronous", "t": 2},
    },
    "own server, sync": {
        "problem": {"server": OWN_SERVER},
        "protocol": {"kind": "synchronous"},
    },
    "noise": {"algorithm": {"perturbation": NOISY}},
    "noise all": {"algorithm": {"perturbation": NOISY, "upload": "all"}},
    "noise sync": {
        "algorithm": {"perturbation": NOISY},
        "protocol": {"kind": "synchronous"},
    },
    "noise views": {
        "algorithm": {"perturbation": {"std": 0.1, "hidden": {"std": 0.1}}},
        "problem": {"server": {"combine": "weighted_sum", "views": 2}},
    },
}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def unrolled(arrays: Any) -> np.ndarray:
    """Lays matrices and biases out as the twin does."""
    return np.concatenate([np.array(array).T.ravel() for array in arrays])


def theta_of(plan: Prepared, weights: Any) -> list[np.ndarray]:
    """Returns each party's weights, without the columns that it does not hold."""
    embedding, found = plan.problem.embedding, []
    for flat, held in zip(weights, plan.problem.num_features, strict=True):
        first, *others = split(flat, embedding.network.shapes)
        own = held // embedding.views
        assert (first[:, own:] == 0).all()
        found.append(unrolled([first[:, :own], *others]))
    return found


def server_of(plan: Prepared, flat: Any) -> np.ndarray:
    return unrolled(split(flat, arrays_of(plan.problem.server).shapes))


def noise_of(plan: Prepared, key: Any = None) -> twin.Noise | None:
    """Gives the twin the kernel's own numbers, one sample at a time."""
    noise = plan.kernel.noise
    key = key_of(plan.run.seed) if key is None else key
    if noise is None:
        return None
    embedding, drawn = plan.problem.embedding, {}

    def of(party: int, job: int, sample: int) -> tuple[np.ndarray, np.ndarray]:
        if (party, job) not in drawn:
            ids = jnp.arange(plan.problem.num_samples)
            at = key, jnp.int32(party), jnp.int32(job)
            (hidden,) = inside(key, noise, *at[1:], ids, hidden_shapes(embedding))
            last = noise.fixed * draw(*at, ids, embedding.num_outputs)
            drawn[party, job] = np.asarray(hidden), np.asarray(last)
        hidden, last = drawn[party, job]
        return hidden[..., sample], last[:, sample].reshape(embedding.views, -1)

    assert AT_START == twin.INITIAL_JOB
    return of


def program_of(plan: Prepared) -> list[twin.Commit | twin.Refresh]:
    rows, samples = rows_of(plan)
    program: list[twin.Commit | twin.Refresh] = []
    for row in range(rows.time.size):
        workers = [int(w) for w in rows.worker[row] if w != NO_WORKER]
        jobs = [int(j) for j in rows.job[row][: len(workers)]]
        ids = [samples[row, min(i, samples.shape[1] - 1)] for i in range(len(workers))]
        program.append(twin.Commit(tuple(workers), tuple(jobs), tuple(ids)))
    return program


def setting_of(plan: Prepared) -> dict[str, Any]:
    """Returns the data, models and start of the twin."""
    problem, config = plan.problem, plan.run.scenario
    key, views = key_of(plan.run.seed), problem.embedding.views
    widths, server = problem.num_features, config.problem.server
    combine = "concat" if server.build else server.combine
    over = len(widths) * views if combine == "concat" else 1
    return {
        "features": [np.asarray(problem.x[m])[:, :p] for m, p in enumerate(widths)],
        "labels": np.asarray(problem.y),
        "num_outputs": WIDTH,
        "theta": theta_of(plan, problem.start(key)),
        "bias": server_of(plan, problem.start_server(key)),
        "party": [
            twin.NetworkParty(
                Chain(Layer(p // views, HIDDEN, "relu"), Layer(HIDDEN, WIDTH, "relu")),
                views,
            )
            for p in widths
        ],
        "server": twin.NetworkServer(
            Chain(Layer(over * WIDTH, OVER, "relu"), Linear(OVER, 10, bias=True)),
            combine,
        ),
    }


PLAIN = twin.Options(
    upload="all",
    client_order="upload_first",
    server_gradient="before",
    coordinated=True,
    loss="softmax",
    reduction="mean",
    l2=0.01,
    step_size=lambda _: 1.0,
    server_step_size=lambda _: 1.0,
)


def twin_of(plan: Prepared) -> twin.Trace:
    """Plays the same rows, samples and noise."""
    options = PLAIN._replace(
        upload=plan.run.scenario.algorithm.upload,
        coordinated=plan.coordinated,
        step_size=lambda _: 0.2,
        server_step_size=lambda _: 0.05,
    )
    own = {"rows": program_of(plan), "options": options, "noise": noise_of(plan)}
    return twin.run(**setting_of(plan), **own)


def assert_agree(plan: Prepared, state: Any, expected: twin.Trace) -> None:
    near = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(server_of(plan, state.server), expected.bias, **near)
    found = theta_of(plan, state.weights)
    for mine, theirs in zip(found, expected.theta, strict=True):
        np.testing.assert_allclose(mine, theirs, **near)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_twin(name: str) -> None:
    plan = prepared(SGD, BASE, CASES[name])
    expected = twin_of(plan)
    (found,) = ran([plan])
    assert_agree(plan, found.state, expected)
    np.testing.assert_allclose(found.infos["loss"], expected.loss, 1e-9)
    start = server_of(plan, plan.problem.start_server(key_of(plan.run.seed)))
    assert np.abs(expected.bias - start).max() > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("mode", ["stepwise", "shared", "batched"])
def test_engines_agree_with_the_twin(mode: str) -> None:
    """Two step sizes on one timeline, or two seeds; each has a twin of its own."""
    noisy = CASES["noise"]
    plans = [
        prepared(SGD, BASE, noisy, {"algorithm": {"server_step_size": step}})
        if mode == "shared"
        else prepared(SGD, BASE, noisy, seed=number, number=number)
        for number, step in enumerate((0.05, 0.02))
    ]
    plans = plans[:1] if mode == "stepwise" else plans
    for number, (plan, found) in enumerate(zip(plans, ran(plans, mode), strict=True)):
        if mode != "shared" or number == 0:
            assert_agree(plan, found.state, twin_of(plan))


@pytest.mark.parametrize("name", ["noise", "noise views"])
def test_the_smoothed_gradient_is_the_twins_mean_over_pairs(name: str) -> None:
    """Of the whole objective at draws of the noise, which evaluations share."""
    plan = prepared(SGD, BASE, CASES[name])
    problem, key = plan.problem, key_of(plan.run.seed)
    own = jax.random.fold_in(key, smoothed.EVALUATIONS)
    start = problem.start(key), problem.start_server(key)
    found = smoothed.gradient_norm_squared(problem, start, plan.kernel.noise, key)
    gradients = [whole_gradient(plan, own, turn) for turn in range(smoothed.DRAWS)]
    expected = np.mean([a @ b for a, b in combinations(gradients, 2)])
    np.testing.assert_allclose(found, expected, 1e-9)


def whole_gradient(plan: Prepared, key: Any, job: int) -> np.ndarray:
    """Returns the gradient of all blocks at the start, with the noise of a job.

    A coordinated commit of all samples, with steps of one, moves by it.
    """
    setting = setting_of(plan)
    num, M = len(setting["labels"]), len(setting["features"])
    row = twin.Commit((*range(M),), (job,) * M, (np.arange(num),) * M)
    own = {"rows": [row], "options": PLAIN, "noise": noise_of(plan, key)}
    trace = twin.run(**setting, **own)
    ends = [*zip(setting["theta"], trace.theta, strict=True)]
    ends.append((setting["bias"], trace.bias))
    return np.concatenate([begun - end for begun, end in ends])
