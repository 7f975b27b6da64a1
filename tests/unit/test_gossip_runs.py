"""Small runs of workers without a server: what their tables say is what happened."""

import re
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.engine import execute as executing
from stalesim.simulator.engine import simulation
from stalesim.simulator.files.study import Categorical
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.scenario.study import merge
from tests.runs import execute, prepared
from tests.support import SGD, Memory

K, BYTES = 5, 4 * 650
"""Workers, and what a model of 65 weights for each of ten classes weighs."""
BASE: dict[str, Any] = merge(
    SGD,
    {
        "problem": {
            "data": {"kind": "digits", "limit": 200},
            "partition": {"kind": "iid", "clients": K},
        },
        "clients": {"compute": {"law": "expon", "loc": 0.1}},
        "protocol": {"kind": "gossip"},
        "algorithm": {"kind": "psgd", "step_size": 0.5, "batch": 8},
        "stop": {"commits": 120},
        "evaluate": {
            "every": {"commits": 40},
            "metrics": [
                *("test_accuracy", "test_loss"),
                *("consensus_distance", "worker_accuracy", "worker_loss"),
            ],
        },
        "engine": {"chunk": 64},
    },
)
EDGES = ((1, 2), (2, 3), (3, 4), (4, 5), (2, 5))
DEGREES = np.array([1, 3, 2, 2, 2])
ROUNDS = {
    "stop": {"commits": None, "rounds": 6},
    "evaluate": {"every": {"commits": None, "rounds": 2}},
}


def rounds(average: str, **options: Any) -> tuple[dict[str, Any], ...]:
    return {"protocol": {"average": average, **options}}, ROUNDS


NEIGHBOURS = rounds("neighbours", graph={"kind": "edges", "edges": EDGES})
ALL = rounds("all")
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "pairwise": (),
    "neighbours": NEIGHBOURS,
    "all": ALL,
}
every_run = pytest.mark.parametrize("name", RUNS)


class Ran:
    """Tables of a run, its end, and the fractions that it reported."""

    def __init__(self, *changes: dict[str, Any], seed: int = 1, mode: Any = "compiled"):
        self.memory, self.fractions = Memory(), list[float]()
        plan = prepared(BASE, *changes, seed=seed)
        (self.end,) = simulation.execute(
            [plan],
            mode,
            self.memory,  # pyright: ignore[reportArgumentType]
            lambda fraction, _: self.fractions.append(fraction),
        )

    def __call__(self, table: str, name: str) -> np.ndarray:
        """Returns a column; words as their codes."""
        parts = [part[name] for part in self.memory.tables[table]]
        return np.concatenate(
            [p.codes if isinstance(p, Categorical) else p for p in parts]
        )

    def is_commit(self) -> np.ndarray:
        return self("commits", "kind") == Kind.COMMIT

    def before(self, commits: int) -> int:
        """Returns how many rows there are up to and with a commit."""
        if not commits:
            return 0
        made = (self("commits", "commit") == commits) & self.is_commit()
        return int(np.flatnonzero(made)[0]) + 1


@pytest.fixture(scope="module")
def ran() -> dict[str, Ran]:
    return {name: Ran(*changes) for name, changes in RUNS.items()}


@every_run
def test_the_distance_of_every_row_is_the_exact_one(
    ran: dict[str, Ran], name: str
) -> None:
    run = ran[name]
    distance = run("commits", "consensus_distance")
    assert distance.dtype == np.float32
    assert np.isfinite(distance).all()
    assert (distance >= 0).all()
    exact = run("evaluations", "consensus_distance")
    assert exact[0] == 0
    assert distance[run.is_commit()].max() > 0.05
    assert exact.max() > (-1 if name == "all" else 0.01)
    rows = [run.before(int(commits)) for commits in run("evaluations", "commits")]
    if name == "all":  # a round ends with an averaging
        rows = [row + 1 for row in rows]
    elif name == "neighbours":
        rows[-1] = distance.size
    scale = distance.max()
    np.testing.assert_allclose(
        distance[np.array(rows[1:]) - 1], exact[1:], rtol=1e-4, atol=1e-6 * scale
    )


@pytest.mark.parametrize("merge", ["mean", "age"])
def test_rows_have_the_distance_where_a_scenario_looks_at_it(merge: str) -> None:
    method = {"algorithm": {"merge": merge}}
    blind = {"evaluate": {"metrics": ["test_loss"]}}
    window = {"column": "consensus_distance", "below": 0.0}
    asked, unasked = Ran(method), Ran(method, blind)
    windowed = Ran(method, blind, {"stop": {"windowed": window}})
    parts = unasked.memory.tables["commits"]
    assert not any("consensus_distance" in part for part in parts)
    distance = windowed("commits", "consensus_distance")
    np.testing.assert_array_equal(distance, asked("commits", "consensus_distance"))
    for table, name in (("commits", "loss"), ("evaluations", "test_loss")):
        np.testing.assert_allclose(unasked(table, name), asked(table, name), 1e-5)


@every_run
def test_means_of_workers_are_those_of_their_table(
    ran: dict[str, Ran], name: str
) -> None:
    run = ran[name]
    times = run("evaluations", "time")
    assert run("workers", "client").tolist() == [*range(K)] * times.size
    assert run("workers", "time").tolist() == np.repeat(times, K).tolist()
    commits = np.repeat(run("evaluations", "commits"), K)
    assert run("workers", "commits").tolist() == commits.tolist()
    for metric in ("worker_accuracy", "worker_loss"):
        each = run("workers", metric).reshape(-1, K)
        np.testing.assert_allclose(
            run("evaluations", metric), each.mean(axis=1), rtol=1e-6
        )
        whole = run("evaluations", metric.replace("worker", "test"))
        np.testing.assert_allclose(each[0], whole[0], rtol=1e-6)  # all start alike
        if name == "pairwise":
            assert (np.ptp(each[1:], axis=1) > 0).all()
    # The loss is convex: that of the average model is at most the average loss.
    mean = run("evaluations", "worker_loss")
    assert (run("evaluations", "test_loss") <= mean * (1 + 1e-6)).all()


def test_pairs_send_two_models_an_averaging(ran: dict[str, Ran]) -> None:
    run = ran["pairwise"]
    averaged = run("commits", "kind") == Kind.AVERAGE
    assert averaged.sum() > 30
    expected = [
        2 * averaged[: run.before(int(commits))].sum()
        for commits in run("evaluations", "commits")
    ]
    assert run("evaluations", "messages").tolist() == expected
    sent = run("evaluations", "upload_bytes")
    assert sent.tolist() == [BYTES * n for n in expected]
    assert (run("evaluations", "download_bytes") == 0).all()
    assert np.isnan(run("evaluations", "rounds")).all()
    assert run("commits", "num_contributions")[averaged].sum() == 0


def test_neighbours_send_as_many_models_as_they_have(ran: dict[str, Ran]) -> None:
    run = ran["neighbours"]
    assert run("evaluations", "rounds").tolist() == [0, 2, 4, 6]
    assert run("evaluations", "commits").tolist() == [0, 10, 20, 30]
    messages = [DEGREES.sum() * n for n in (0, 2, 4, 6)]
    assert run("evaluations", "messages").tolist() == messages
    sent = run("evaluations", "upload_bytes")
    assert sent.tolist() == [BYTES * n for n in messages]
    assert run("jobs", "upload_messages").sum() == messages[-1]


def test_everyone_sends_one_model_a_round(ran: dict[str, Ran]) -> None:
    run = ran["all"]
    commits = run("evaluations", "commits")
    assert run("evaluations", "messages").tolist() == commits.tolist()
    assert run("evaluations", "upload_bytes").tolist() == (BYTES * commits).tolist()
    assert run("jobs", "upload_messages").sum() == commits[-1] == 6 * K


@every_run
def test_a_job_uploads_what_its_worker_sent_since_its_last_step(
    ran: dict[str, Ran], name: str
) -> None:
    run = ran[name]
    clients, jobs = run("jobs", "client"), run("jobs", "job")
    applied = ~np.isnan(run("jobs", "applied_time"))
    uploads = run("jobs", "upload_messages")
    assert (uploads[~applied] == 0).all()
    assert (run("jobs", "upload_bytes") == BYTES * uploads).all()
    assert (run("jobs", "download_messages") == 0).all()
    if name != "pairwise":
        each = DEGREES if name == "neighbours" else np.ones(K)
        assert (uploads[applied] == each[clients[applied]]).all()
        return
    # A transfer takes no time here, so that it falls into the row of its averaging.
    plan = prepared(BASE)
    rows = next(iter(plan.timeline.chunks(10_000))).rows
    since = np.zeros(K, int)
    expected = {}
    for kind, workers, job in zip(rows.kind, rows.worker, rows.job, strict=True):
        if kind == Kind.AVERAGE:
            since[workers] += 1
        else:
            expected[int(workers[0]), int(job[0])] = since[workers[0]]
            since[workers[0]] = 0
    keys = zip(clients[applied].tolist(), jobs[applied].tolist(), strict=True)
    found = dict(zip(keys, uploads[applied].tolist(), strict=True))
    assert found == expected
    assert max(found.values()) > 1 > min(found.values())


@every_run
def test_staleness_counts_all_workers_commits(ran: dict[str, Ran], name: str) -> None:
    run = ran[name]
    made = run.is_commit()
    rounds = run("commits", "round")[made]
    times = run("commits", "time")[made]
    clients = run("jobs", "client")
    read, applied = run("jobs", "read_time"), run("jobs", "applied_time")
    ages = [[] for _ in range(K)]
    for client, begun, ended, commit in zip(
        clients, read, applied, run("jobs", "commit"), strict=True
    ):
        if np.isnan(ended):
            continue
        others = run("commits", "client")[made] != client
        # A worker's own last step is no later than its read, and its next one is this.
        # The gradients of a round have all read the state before it: steps of the same
        # round, which come after each other, make none of them staler.
        order = np.arange(1, times.size + 1)
        before = (times > begun) & (order < commit)
        if name != "pairwise":
            before &= rounds != rounds[commit - 1]
        ages[client].append(int((others & before).sum()))
    for client, own in enumerate(ages):
        assert run("clients", "num_applied")[client] == len(own)
        assert run("clients", "staleness_max")[client] == max(own)
        mean = run("clients", "staleness_mean")[client]
        assert mean == pytest.approx(np.mean(own))
    if name == "pairwise":
        assert max(map(max, ages)) >= K - 1
    else:
        assert max(map(max, ages)) == 0
        assert run("commits", "staleness_max").tolist() == [0] * run.is_commit().size
    assert run("clients", "num_applied").sum() == made.sum()


@every_run
def test_rounds_are_steps_of_everyone_and_progress_ends_at_one(
    ran: dict[str, Ran], name: str
) -> None:
    run = ran[name]
    commits = 120 if name == "pairwise" else 6 * K
    assert run.end["stop"] == ("commits" if name == "pairwise" else "rounds")
    assert run.end["commits"] == run.end["contributions"] == commits
    assert run.is_commit().sum() == commits
    if name != "pairwise":
        mixed = run("commits", "kind") == Kind.AVERAGE_ALL
        assert mixed.sum() == 6
        assert (run("commits", "round")[mixed] == np.arange(6)).all()
        assert run("clients", "num_applied").tolist() == [6] * K
    assert run.fractions[-1] == 1
    assert (np.diff(run.fractions) >= 0).all()


def test_averaging_with_everyone_leaves_no_distance(ran: dict[str, Ran]) -> None:
    run = ran["all"]
    mixed = run("commits", "kind") == Kind.AVERAGE_ALL
    distance = run("commits", "consensus_distance")
    assert distance[mixed].max() < 1e-10 * distance.max()
    assert run("evaluations", "consensus_distance")[-1] < 1e-10 * distance.max()
    last = run("workers", "worker_accuracy")[-K:]
    assert (last == run("evaluations", "test_accuracy")[-1]).all()


def test_a_round_is_evaluated_once_and_after_its_averaging(ran: dict[str, Ran]) -> None:
    run = ran["all"]
    assert run("evaluations", "rounds").tolist() == [0, 2, 4, 6]
    scale = run("commits", "consensus_distance").max()
    assert run("evaluations", "consensus_distance").max() < 1e-10 * scale


def test_a_run_is_repeated_bit_for_bit(ran: dict[str, Ran]) -> None:
    again, other = Ran(), Ran(seed=2)
    for table, parts in ran["pairwise"].memory.tables.items():
        for name in parts[0]:
            np.testing.assert_array_equal(
                again(table, name), ran["pairwise"](table, name), name
            )
    assert again.end["timeline"] == ran["pairwise"].end["timeline"]
    assert other.end["timeline"] != again.end["timeline"]
    assert (
        other("evaluations", "test_loss") != again("evaluations", "test_loss")
    ).any()


def test_step_by_step_is_as_compiled(ran: dict[str, Ran]) -> None:
    run, steps = ran["pairwise"], Ran(mode="stepwise")
    for table, parts in run.memory.tables.items():
        for name in parts[0]:
            expected, known = run(table, name), slice(None)
            if expected.dtype.kind == "f":
                known = ~np.isnan(expected)
                assert (np.isnan(steps(table, name)) == ~known).all()
            scale = np.abs(expected[known]).max(initial=0)
            np.testing.assert_allclose(
                steps(table, name)[known],
                expected[known],
                rtol=1e-6,
                atol=1e-6 * scale,
                err_msg=f"{table}.{name}",
            )


def test_runs_of_two_seeds_in_one_batch_are_those_alone(ran: dict[str, Ran]) -> None:
    plans = [prepared(BASE, seed=seed, number=seed) for seed in (1, 2)]
    memory, ends = execute(plans, "batched")
    assert [end["commits"] for end in ends] == [120, 120]
    for metric in ("worker_accuracy", "worker_loss"):
        found = memory.column("workers", metric, 1)
        np.testing.assert_allclose(found, ran["pairwise"]("workers", metric), 1e-5)
        assert memory.column("workers", metric, 2).size == found.size


def test_a_row_of_large_models_copies_no_table_and_pads_no_gradient() -> None:
    dense = {"kind": "dense", "hidden": [512]}
    plan = prepared(BASE, {"problem": {"model": dense}})
    program = executing.Program(plan.kernel, plan.problem)
    carry = program.start(simulation.key_of(1), plan.timeline.num_registers)
    events = executing.null_events(4, plan.timeline.width, plan.samples)
    compiled = executing._run.lower(
        *(plan.kernel, plan.problem, carry, events, np.int32(0), np.int32(4)),
        program.infos(carry, events), batched=False, shared=True,
    ).compile()  # fmt: skip
    text, (K, P) = compiled.as_text() or "", carry.state.models.shape
    assert f"f32[{K},{P}]" in text
    assert not re.search(rf"f32\[{K},{P}\]\S* copy\(", text)
    assert f"f32[2,{P}]" not in text  # two models together are copies of both
    assert not re.search(rf"f32\[{P}\]\S* pad\(", text)
    body = text[: text.index("ENTRY")]
    sums = re.findall(r"reduce-window\(%(\S+),", body)  # sums are products first
    assert not any(re.search(rf"%{name} = f32\[{P}\]", body) for name in sums)
