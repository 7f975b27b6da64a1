"""What the comparisons of decentralised algorithms with their twin share."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, _program, _runner, key_of
from stalesim.simulator.files.timeline import Jobs, Kind, Rows
from stalesim.simulator.privacy import mechanisms
from stalesim.simulator.scenario.study import merge
from tests.reference import gossip_twin as twin
from tests.runs import prepared
from tests.support import SGD, everything

K, NUM_SAMPLES, BATCH, NEAR = 6, 150, 7, (1e-9, 1e-13)
# In epochs; from commit 108 on, with which a round begins, the second one.
STEPS = {"kind": "piecewise", "values": [0.5, 0.3], "epochs": [5.0]}
DRAWN = {"law": "expon", "loc": 0.1}
BASE = merge(
    SGD,
    {
        "problem": {
            "data": {"kind": "digits", "scale": "unit", "limit": NUM_SAMPLES},
            "partition": {"kind": "iid", "clients": K},
            "l2": 0.01,
        },
        "clients": {"compute": DRAWN},
        "protocol": {"kind": "gossip"},
        "algorithm": {"kind": "psgd", "step_size": STEPS, "batch": BATCH},
        "stop": {"commits": 210},
        "evaluate": {"every": {"commits": 210}, "metrics": ["consensus_distance"]},
        "engine": {"precision": "float64", "chunk": 64},
    },
)
ROUNDS = {"stop": {"commits": None, "rounds": 30}}
LINKS = {"upload": {"latency": {"law": "expon", "scale": 0.3}}}
WORLDS: dict[str, dict[str, Any]] = {
    "no links": {},
    "links": {"clients": LINKS},
    "idle": {"clients": LINKS | {"idle": {"law": "expon", "scale": 0.5}}},
}
LINKED = WORLDS["links"]
SLOW = pytest.mark.slow
UNEQUAL = ((1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 3), (1, 5))
ARCS = ((1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1), (1, 4), (3, 1), (3, 6))
EVERY = {"initiator": "every"}
GRAPHS: dict[str, dict[str, Any]] = {
    "ring": {"graph": {"kind": "ring"}} | EVERY,
    "ring, senders": {"graph": {"kind": "ring"}, "initiator": "sender"},
    "bipartite": {"graph": {"kind": "bipartite"}} | EVERY,
    "bipartite, senders": {"graph": {"kind": "bipartite"}},
    "complete": {"graph": {"kind": "complete"}} | EVERY,
}


def gossip(**options: Any) -> dict[str, Any]:
    return {"protocol": {"kind": "gossip", **options}}


def method(kind: str, **options: Any) -> dict[str, Any]:
    options = {"step_size": STEPS, "batch": BATCH, **options}
    return {"algorithm": {"kind": kind, **options}}


def noisy(sigma: float, on: str = "sum", clip: str = "none") -> dict[str, Any]:
    noise = {"sigma": sigma, "on": on, "clip": clip, "bound": 3.0}
    return method("adp2sgd", noise=noise)


def plan_of(*changes: dict[str, Any], seed: int = 3) -> Prepared:
    return prepared(BASE, *changes, seed=seed)


class Ran(NamedTuple):
    """What an engine makes of a run: the last state, the model, and diagnostics."""

    state: Any
    model: Any
    infos: dict[str, np.ndarray]


def ran(plans: list[Prepared], mode: str = "compiled") -> list[Ran]:
    with jax.enable_x64(plans[0].run.scenario.engine.precision == "float64"):
        runner = _runner(plans, _program(plans, mode))
        records = list(runner.records())
        state, together = runner._carry.state, mode in ("batched", "shared")
        found = []
        for run, plan in enumerate(plans):
            mine = [record for record in records if record.run == run]
            infos = {
                name: np.concatenate([record.infos[name] for record in mine])
                for name in mine[0].infos
            }
            own = jax.tree.map(lambda x, run=run: x[run] if together else x, state)
            model = jax.tree.map(np.asarray, plan.kernel.read_out(own))
            found.append(Ran(own, model, infos))
    return found


def flat(models: Any) -> np.ndarray:
    return np.asarray(models).reshape(len(models), -1)


@partial(jax.jit, static_argnums=3)
@partial(jax.vmap, in_axes=(None, 0, 0, None))
def drawn(key: Any, worker: Any, job: Any, num: int) -> Any:
    key = jax.random.fold_in(jax.random.fold_in(key, worker), job)
    return mechanisms.gaussian(key, jnp.zeros(num), jnp.asarray(1.0))[0]


def noises(plan: Prepared, rows: Rows) -> list[Any]:
    """Draws from N(0, I), by the key of a row's worker and job, where there are any."""
    if not hasattr(plan.run.scenario.algorithm, "noise"):
        return [None] * rows.time.size
    with jax.enable_x64(True):
        who, num = (rows.worker[:, 0], rows.job[:, 0]), plan.shape.num_weights
        return list(np.asarray(drawn(key_of(plan.run.seed), *who, num)))


def gradient_of(plan: Prepared) -> twin.Gradient:
    """Softmax regression; with clipping, samples' regularised gradients one by one."""
    x, y = np.asarray(plan.problem.x), np.asarray(plan.problem.y)
    l2, C = float(plan.problem.l2), plan.shape.num_outputs
    noise = getattr(plan.run.scenario.algorithm, "noise", None)
    bound = np.inf if noise is None or noise.clip == "none" else noise.bound

    def gradient(w: np.ndarray, worker: int, batch: np.ndarray) -> np.ndarray:
        weights = w.reshape(C, -1)
        odds = np.exp(weights @ x[batch].T)
        error = odds / odds.sum(axis=0) - (np.arange(C)[:, None] == y[batch])
        penalty = l2 * weights
        penalty[:, -1] = 0  # the bias
        each = np.einsum("cs,sp->scp", error, x[batch]) + penalty
        norms = np.linalg.norm(each.reshape(len(batch), -1), axis=1)
        factors = np.minimum(1.0, bound / norms)
        return np.einsum("s,scp->cp", factors, each).ravel() / len(batch)

    return gradient


def reads_before(rows: Rows, jobs: Jobs, *, during: bool) -> dict[int, list[int]]:
    """Returns the workers that read just before each row.

    With delays from continuous laws, rows of one instant are steps and averagings that
    one worker's gradient or message entails. It reads last of all, but for an averaging
    that begins with its gradient and takes no time.
    """
    found: dict[int, list[int]] = {}
    commits = np.flatnonzero(rows.kind == Kind.COMMIT)
    ends = {(int(rows.worker[r, 0]), int(rows.job[r, 0])): int(r) for r in commits}
    for worker, job, time, version in zip(
        jobs.client, jobs.job, jobs.read_time, jobs.read_version, strict=True
    ):
        at = int(np.searchsorted(rows.time, time, "left" if during else "right"))
        end = ends.get((int(worker), int(job) - 1))
        if during and end is not None and rows.time[end] == time:
            at = end + 1
        assert (commits < at).sum() == version
        found.setdefault(at, []).append(int(worker))
    return found


def events_of(plan: Prepared, batches: Any) -> list[twin.Event]:
    """Returns a timeline's reads, averagings and steps on these batches of rows."""
    rows, jobs, _ = everything(plan.timeline)
    noise, events = noises(plan, rows), list[twin.Event]()
    during = plan.run.scenario.protocol.order == "during"
    readers = reads_before(rows, jobs, during=during)
    message_in: dict[int, int] = {}
    for row in range(rows.time.size):
        events += [("read", worker) for worker in readers.get(row, [])]
        first, second = rows.worker[row].tolist()
        match Kind(rows.kind[row]):
            case Kind.COMMIT:
                events.append(("update", first, batches[row], noise[row]))
            case Kind.AVERAGE:
                events.append(("average", first, second))
            case Kind.SEND:
                message_in[int(rows.read_slot[row, 1])] = row
                events.append(("send", second, row))
            case Kind.MERGE:
                message = message_in[int(rows.read_slot[row, 1])]
                events.append(("merge", first, message))
            case _:
                events.append(("average_all",))
    return events


def twin_of(plan: Prepared) -> tuple[Rows, twin.Trace]:
    """Plays a run through the twin."""
    rows, _, _ = everything(plan.timeline)
    events = events_of(plan, plan.sampler.attach(rows)[:, 0])
    ways = {"age": "by_age", "replace": "replaces", "cached": "keeps"}
    merge = getattr(plan.run.scenario.algorithm, "merge", "mean")
    way = {ways[merge]: True} if merge in ways else {}
    return rows, twin.gossip(*world_of(plan), events, method_of(plan), **way)


def world_of(plan: Prepared) -> tuple[np.ndarray, int]:
    return np.zeros(plan.shape.num_weights), plan.timeline.num_clients


def method_of(plan: Prepared) -> twin.Method:
    config = plan.run.scenario.algorithm
    rule, noise = config.step_size, getattr(config, "noise", None)
    optimizer = getattr(config, "optimizer", None)
    assert optimizer is None or optimizer.kind == "momentum"

    def eta(t: int) -> float:
        return rule.values[int(t * BATCH / NUM_SAMPLES >= rule.epochs[0])]

    sigma, on = (noise.sigma, noise.on) if noise else (0.0, "sum")
    momentum = optimizer.decay if optimizer else 0.0
    return twin.Method(gradient_of(plan), eta, sigma, on, momentum)


def rounds_of(plan: Prepared) -> tuple[Rows, list[twin.Round]]:
    """Returns what every worker computes in each round."""
    rows, _, _ = everything(plan.timeline)
    samples, noise = plan.sampler.attach(rows), noises(plan, rows)
    rounds = []
    for number in range(int(rows.round.max()) + 1):
        mine = np.flatnonzero((rows.round == number) & (rows.kind == Kind.COMMIT))
        mine = mine[np.argsort(rows.worker[mine, 0])]
        assert rows.worker[mine, 0].tolist() == list(range(plan.timeline.num_clients))
        rounds.append([(samples[row, 0], noise[row]) for row in mine])
    return rows, rounds


def assert_agree(found: Ran, models: np.ndarray, consensus: np.ndarray) -> None:
    """Compares what is left with the twin's, and the distance where it has one."""
    np.testing.assert_allclose(flat(found.state.models), models, *NEAR)
    np.testing.assert_allclose(found.model.ravel(), models.mean(axis=0), *NEAR)
    assert np.square(models).sum() > 0.01, "a run that goes nowhere shows nothing"
    distance, known = found.infos["consensus_distance"], ~np.isnan(consensus)
    scale = distance.max()
    assert scale > 1e-4, "workers that are always alike show nothing"
    np.testing.assert_allclose(distance[known], consensus[known], 1e-9, 1e-13 * scale)


def sampled(cases: Any, always: Any) -> list[Any]:
    return [
        case
        if case in always
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=SLOW)
        for case in cases
    ]


PUSH = method("sgp")
MOMENTUM = {"algorithm": {"optimizer": {"kind": "momentum", "decay": 0.6}}}
