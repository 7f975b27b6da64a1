"""Compressed messages in either direction against a twin with its own loop."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.keys import key_of
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.timeline import Kind, Outcome
from stalesim.simulator.timelines.saved import record
from tests.extras.compression import twin
from tests.extras.compression.twin import Method
from tests.runs import execute, prepared

SEED, COMMITS, STEP, L2 = 7, 24, 0.3, 0.01
COMPUTE, BANDWIDTH = (1.0, 2.75), 97.0
PROTOCOLS = ("asynchronous", "synchronous")
CLIENT = 2**31 - 1
"""Numbers above all clients'."""
QSGD = ("qsgd", {"levels": 4, "bucket": 50})
TOP_K, RANDOM_K = ("top_k", {"keep": 30}), ("random_k", {"keep": 30})
SIGNS, LOW_RANK = ("signs", {}), ("low_rank", {"rank": 2})
METHODS = {
    "qsgd": Method(QSGD, "none", None),
    "qsgd, both": Method(QSGD, "ef21", QSGD),
    "random_k": Method(RANDOM_K, "none", None),
    "random_k, both": Method(RANDOM_K, "ef", RANDOM_K),
    "top_k": Method(TOP_K, "none", None),
    "top_k, both": Method(TOP_K, "ef", TOP_K),
    "top_k, ef21": Method(TOP_K, "ef21", QSGD),
    "signs": Method(SIGNS, "ef", LOW_RANK),
    "signs, ef21": Method(SIGNS, "ef21", None),
    "signs down": Method(QSGD, "none", SIGNS),
    "low_rank, both": Method(LOW_RANK, "ef", LOW_RANK),
    "low_rank, ef21": Method(LOW_RANK, "ef21", None),
}


def tree(method: Method, protocol: str) -> dict[str, Any]:
    down, up = (
        {"compressor": {"kind": each[0], **each[1]}} if each else {}
        for each in (method.down, method.up)
    )
    link = {"bandwidth": BANDWIDTH}
    return {
        "problem": {
            "data": {"kind": "digits", "limit": 200},
            "partition": {"kind": "labels", "clients": 2, "classes_per_client": 6},
            "l2": L2,
        },
        "clients": {
            "compute": {"law": "constant", "value": list(COMPUTE)},
            "upload": link,
            "download": link,
        },
        "protocol": {"kind": protocol},
        "algorithm": {
            "kind": "chained",
            "step_size": STEP,
            "batch": 11,
            "chain": [
                *([{"kind": "broadcast", **down}] if down else []),
                {"kind": "local_work"},
                {"kind": "compress", "feedback": method.feedback, **up},
                *({"kind": kind} for kind in ("weigh", "mean", "step")),
            ],
        },
        "engine": {"precision": "float64"},
        "stop": {"commits": COMMITS},
        "evaluate": {"every": {"commits": 1}, "metrics": ["objective"]},
    }


def world(run: Any) -> twin.World:
    """Returns the run's data, batches and draws, as the twin takes them."""
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y)
    regularised = np.append(np.ones(x.shape[1] - 1), 0)

    def gradient(client: int, job: int, weights: np.ndarray) -> np.ndarray:
        rows = run.sampler.batch(client, job).ravel()
        total = np.zeros_like(weights)
        for row in rows:
            scores = np.exp(weights @ x[row] - (weights @ x[row]).max())
            scores /= scores.sum()
            scores[y[row]] -= 1
            total += np.outer(scores, x[row])
        return total / rows.size + L2 * weights * regularised

    def draw(direction: str, client: int, job: int, shape: Any) -> np.ndarray:
        key = key_of(SEED)
        for number in (CLIENT - {"up": 3, "down": 4}[direction], client, job):
            key = jax.random.fold_in(key, number)
        return np.asarray(jax.random.uniform(key, shape, float))

    (only,) = jax.random.split(jax.random.key(0), 1)
    return twin.World(
        start=np.zeros((10, x.shape[1])),
        gradient=gradient,
        draw=draw,
        compute_s=COMPUTE,
        bytes_per_s=BANDWIDTH,
        step=STEP,
        first_q=np.asarray(jax.random.normal(only, (x.shape[1], 2), float)),
    )


def codes(memory: Any, table: str, name: str) -> np.ndarray:
    """Returns a column of words as numbers, of the only run."""
    return np.concatenate([piece[name].codes for piece in memory.tables[table]])


def objectives(run: Any, models: list[np.ndarray]) -> np.ndarray:
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y)
    found = []
    for weights in models:
        scores = x @ weights.T
        largest = scores.max(axis=1)
        logs = np.log(np.exp(scores - largest[:, None]).sum(axis=1)) + largest
        loss = (logs - scores[np.arange(len(y)), y]).mean()
        found.append(loss + L2 / 2 * (weights[:, :-1] ** 2).sum())
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "case",
    [
        name if method.down else pytest.param(name, marks=pytest.mark.long)
        for name, method in METHODS.items()
    ],
)
def test_times_models_and_errors_are_those_of_the_twin(
    case: str, protocol: str
) -> None:
    method = METHODS[case]
    with jax.enable_x64(True):
        run = prepared(tree(method, protocol), seed=SEED)
        memory, _ = execute([run])
        found = twin.played(method, world(run), protocol, COMMITS)
    times = memory.column("commits", "time")
    np.testing.assert_allclose(times, found.times, rtol=1e-12)
    wanted = objectives(run, [world(run).start, *found.models])
    np.testing.assert_allclose(
        memory.column("evaluations", "objective"), wanted, rtol=1e-9
    )
    down, up = np.array(found.errors).T
    errors = memory.column("commits", "compression_error")
    np.testing.assert_allclose(errors, up, rtol=1e-5)  # columns are float32
    if method.down:
        errors = memory.column("commits", "broadcast_error")
        np.testing.assert_allclose(errors, down, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("mode", ["compiled", "stepwise"])
@pytest.mark.parametrize(
    "case",
    [
        "top_k, both",
        pytest.param("signs down", marks=pytest.mark.slow),
        pytest.param("low_rank, both", marks=pytest.mark.slow),
        pytest.param("qsgd, both", marks=pytest.mark.slow),
    ],
)
def test_a_client_whose_job_is_rejected_has_the_model_that_it_got(
    case: str, mode: str
) -> None:
    method, bound, commits = METHODS[case], 1, 60
    changed = tree(method, "asynchronous")
    changed["protocol"]["staleness_bound"] = bound
    changed["stop"]["commits"], changed["engine"]["mode"] = commits, mode
    with jax.enable_x64(True):
        run = prepared(changed, seed=SEED)
        memory, _ = execute([run])
        found = twin.played(method, world(run), "asynchronous", commits, bound)
    outcomes = codes(memory, "jobs", "outcome")
    assert found.rejected >= 3
    assert (outcomes == Outcome.REJECTED).sum() == found.rejected
    kinds = codes(memory, "commits", "kind")
    applied = kinds == Kind.COMMIT
    assert (kinds == Kind.READ).sum() == found.rejected
    np.testing.assert_allclose(
        memory.column("commits", "time")[applied], found.times, rtol=1e-12
    )
    wanted = objectives(run, [world(run).start, *found.models])
    np.testing.assert_allclose(
        memory.column("evaluations", "objective"), wanted, rtol=1e-9
    )
    down, up = np.array(found.errors).T
    for name, errors in (("broadcast_error", down), ("compression_error", up)):
        own = memory.column("commits", name)
        np.testing.assert_allclose(own[applied], errors, rtol=1e-5, atol=1e-12)
    assert np.isnan(memory.column("commits", "loss")[~applied]).all()


@pytest.mark.parametrize("case", ["top_k, ef21", "signs down"])
def test_bytes_are_in_jobs_and_take_their_time(case: str) -> None:
    method = METHODS[case]
    with jax.enable_x64(True):
        memory, _ = execute([prepared(tree(method, "asynchronous"), seed=SEED)])
    over = memory.column("jobs", "commit") <= COMMITS  # the others are on their way
    assert over.sum() == COMMITS
    for bits, column, times in (
        (twin.bits(method.down, 10, 65), "download_bytes", ("read_time", "begun_time")),
        (twin.bits(method.up, 10, 65), "upload_bytes", ("sent_time", "arrived_time")),
    ):
        assert (memory.column("jobs", column)[over] == bits / 8).all()
        begin, end = (memory.column("jobs", name)[over] for name in times)
        np.testing.assert_allclose(end - begin, bits / 8 / BANDWIDTH)


def test_models_of_which_clients_step_are_those_that_they_got() -> None:
    """A mixture takes the client's own model, not the server's of that version."""
    method = Method(TOP_K, "none", TOP_K)
    changed = tree(method, "asynchronous")
    broadcast, work, _, weigh, *_ = changed["algorithm"]["chain"]
    changed["algorithm"]["chain"] = [broadcast, work, weigh, {"kind": "mix"}]
    with jax.enable_x64(True):
        run = prepared(changed, seed=SEED)
        memory, _ = execute([run])
        given = world(run)
    model, jobs, models = given.start, [0, 0], []
    got, reads = [given.start] * 2, [given.start] * 2
    side = twin.Side(given.start, given.first_q)
    for client in memory.column("commits", "client").tolist():
        i = client - 1 if min(memory.column("commits", "client")) else client
        apart = reads[i] - got[i]
        got[i] = got[i] + twin.compressed(TOP_K, apart, side, None)
        own = got[i] - STEP * given.gradient(i, jobs[i], got[i])
        model = 0.4 * model + 0.6 * own
        models.append(model)
        reads[i], jobs[i] = model, jobs[i] + 1
    wanted = objectives(run, [given.start, *models])
    np.testing.assert_allclose(
        memory.column("evaluations", "objective"), wanted, rtol=1e-9
    )


STOPS: dict[str, dict[str, Any]] = {
    "rejected": {"protocol": {"kind": "asynchronous", "staleness_bound": 1}},
    "stopped": {
        "protocol": {"kind": "asynchronous", "staleness_bound": 1, "beyond": "stop"}
    },
    "a round's": {"protocol": {"kind": "synchronous", "wait_for": 1, "late": "stop"}},
    "lost": {"clients": {"loss": {"chance": 0.4, "timeout": 1, "retries": 0}}},
    "crashed": {
        "clients": {
            "crashes": {
                "after": {"law": "expon", "scale": 9},
                "down": {"law": "constant", "value": 2},
            }
        }
    },
}


@pytest.mark.parametrize("case", STOPS)
def test_a_memory_moves_where_a_model_had_arrived(case: str) -> None:
    """Each job of which nothing comes has a row, if its client has got the model."""
    changed = tree(METHODS["top_k, both"], "asynchronous")
    for key, value in STOPS[case].items():
        changed[key] = value if key == "protocol" else changed[key] | value
    changed["stop"]["commits"] = 60
    memory, _ = execute([prepared(changed, seed=SEED)])
    outcomes = codes(memory, "jobs", "outcome")
    vain = ~np.isin(outcomes, (Outcome.APPLIED, Outcome.BUFFERED, Outcome.IN_FLIGHT))
    got = vain & np.isfinite(memory.column("jobs", "begun_time"))
    reads = codes(memory, "commits", "kind") == Kind.READ
    assert reads.sum() == got.sum() > 0
    mine = memory.column("commits", "client")[reads]
    assert sorted(mine) == sorted(memory.column("jobs", "client")[got])
    assert np.isfinite(memory.column("commits", "broadcast_error")[reads]).all()


def test_a_recording_without_such_rows_is_refused(tmp_path: Path) -> None:
    changed = tree(METHODS["top_k, both"], "asynchronous")
    changed["stop"]["commits"] = 60
    own = {key: changed[key] for key in ("clients", "stop")}
    for bound, words in ((None, ""), (1, r"but .* has none of \d+ jobs")):
        protocol = {"kind": "asynchronous", "staleness_bound": bound}
        number = {"clients": own["clients"] | {"number": 2}}
        name = {"name": f"bound-{bound}", "protocol": protocol}
        world = WorldScenario.model_validate(own | number | name)
        folder = tmp_path / f"{bound}"
        record(world, folder)
        changed["protocol"] = protocol
        changed["timeline"] = {"replay": str(folder)}
        if not words:
            execute([prepared(changed, seed=SEED)])
            continue
        with pytest.raises(ScenarioError, match=words):
            prepared(changed, seed=SEED)
