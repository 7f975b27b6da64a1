"""Compressed messages in either direction against stages of a twin."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.keys import key_of
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record
from tests.extras.compression import twin
from tests.reference.methods_support import assert_models_alike, played
from tests.reference.server_twin import STAGES
from tests.runs import execute, prepared
from tests.support import Memory

SEED, COMMITS = 7, 24
"""Of another seed, numbers of equal size may differ in their last digits."""
COMPUTE, BANDWIDTH = (1.0, 2.75), 97.0
CLIENT = 2**31 - 1
"""Numbers above all clients'."""
QSGD = ("qsgd", {"levels": 4, "bucket": 50})
TOP_K, RANDOM_K = ("top_k", {"keep": 30}), ("random_k", {"keep": 30})
SIGNS, LOW_RANK = ("signs", {}), ("low_rank", {"rank": 2})


class Method(NamedTuple):
    """What compresses clients' messages, with which memory, and what the model.

    Attributes:
        up: A compressor's name and options.
        feedback: `none`, `ef` or `ef21`.
        down: Of the model; None where it is sent whole.
    """

    up: twin.Compressor
    feedback: str
    down: twin.Compressor | None


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
            "l2": 0.01,
        },
        "clients": {
            "compute": {"law": "constant", "value": list(COMPUTE)},
            "upload": link,
            "download": link,
        },
        "protocol": {"kind": protocol},
        "algorithm": {
            "kind": "chained",
            "step_size": 0.3,
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
        "evaluate": {
            "every": {"commits": 4},
            "metrics": ["objective", "gradient_norm_squared"],
        },
    }


def drawing(num_inputs: int) -> twin.Compression:
    """Returns stages that draw as a run does."""

    def draw(direction: str, client: int, job: int, shape: Any) -> np.ndarray:
        key = key_of(SEED)
        for number in (CLIENT - {"up": 3, "down": 4}[direction], client, job):
            key = jax.random.fold_in(key, number)
        return np.asarray(jax.random.uniform(key, shape, float))

    (only,) = jax.random.split(jax.random.key(0), 1)
    first_q = np.asarray(jax.random.normal(only, (num_inputs, 2), float))
    return twin.Compression(draw, first_q)


def codes(memory: Any, table: str, name: str) -> np.ndarray:
    """Returns a column of words as numbers, of the only run."""
    return np.concatenate([piece[name].codes for piece in memory.tables[table]])


def assert_like_twin(changed: dict[str, Any]) -> Memory:
    """Compares models, and errors of messages and of models that clients got."""
    with jax.enable_x64(True):
        plan = prepared(changed, seed=SEED)
        memory, _ = execute([plan])
        made = drawing(plan.problem.x.shape[1])
        server = played(plan, STAGES | made.stages())
    assert_models_alike(memory, server)
    kinds = codes(memory, "commits", "kind")
    columns = {"compression_error": kinds == Kind.COMMIT, "broadcast_error": kinds >= 0}
    K = 2 if changed["protocol"]["kind"] == "synchronous" else 1
    for (name, here), errors in zip(columns.items(), (made.up, made.down), strict=True):
        if errors:
            wanted = np.reshape(errors, (-1, K)).mean(axis=1)
            found = memory.column("commits", name)[here]
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-12)
    return memory


TOGETHER = ("qsgd, both", "top_k, ef21", "low_rank, both")
"""Methods that are compared in rounds as well."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "protocol"),
    [
        *((case, "synchronous") for case in TOGETHER),
        *(
            (case, "asynchronous")
            if method.down
            else pytest.param(case, "asynchronous", marks=pytest.mark.long)
            for case, method in METHODS.items()
        ),
    ],
)
def test_models_and_errors_are_those_of_the_twin(case: str, protocol: str) -> None:
    assert_like_twin(tree(METHODS[case], protocol))


@pytest.mark.parametrize(
    "case",
    [
        "top_k, both",
        pytest.param("signs down", marks=pytest.mark.slow),
        pytest.param("low_rank, both", marks=pytest.mark.slow),
        pytest.param("qsgd, both", marks=pytest.mark.slow),
    ],
)
def test_a_client_whose_job_is_rejected_has_the_model_that_it_got(case: str) -> None:
    changed = tree(METHODS[case], "asynchronous")
    changed["protocol"]["staleness_bound"], changed["stop"]["commits"] = 1, 60
    memory = assert_like_twin(changed)
    rejected = (codes(memory, "jobs", "outcome") == Outcome.REJECTED).sum()
    vain = codes(memory, "commits", "kind") == Kind.READ
    assert vain.sum() == rejected >= 3
    assert np.isnan(memory.column("commits", "loss")[vain]).all()


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
    changed = tree(Method(TOP_K, "none", TOP_K), "asynchronous")
    broadcast, work, _, weigh, *_ = changed["algorithm"]["chain"]
    changed["algorithm"]["chain"] = [broadcast, work, weigh, {"kind": "mix"}]
    assert_like_twin(changed)


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
