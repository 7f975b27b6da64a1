"""The engine's modes agree with each other, and stop where they should."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine import execute as execution
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.row_stream import RowStream
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.engine.simulation import _row_stream, prepare_together
from stalesim.simulator.engine.waves import Waves
from stalesim.simulator.files.timeline import NO_SLOT, StopReason
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.studies.planning import structure
from tests.runs import execute, prepared
from tests.support import SGD, of_extras, scenario

STEP = {"step_size": 0.3, "batch": 11}
ADAMW = {"kind": "adamw", "learning_rate": 0.01, "clip_norm": 1.0}
NAMED: dict[str, Any] = {"step_size": None, "optimizer": ADAMW}
MUON = {"step_size": None, "optimizer": ADAMW | {"kind": "muon", "matrices": "all"}}
KEPT = {"step_size": None, "local_steps": 2}
KEPT |= {"local_optimizer": ADAMW | {"kind": "adam", "state": "kept"}}
BUFFERED = {"protocol": {"kind": "buffered", "size": 3}}
SYNCHRONOUS = {"protocol": {"kind": "synchronous"}}
ROUNDS = {"protocol": {"kind": "rounds"}}
WARM = {"protocol": {"warm_up": True}}
PARTIES = {"kind": "fed_bcd", "batch": 17, "local_steps": 2}
DEEP = {"model": {"kind": "dense", "hidden": [4]}}
DEEP |= {"server": {"width": 3, "combine": "concat", "hidden": [4]}}
UNEVEN = {"partition": {"kind": "sizes", "clients": 5, "weights": "m"}}
OWN = {"model": {"kind": "python", "build": "tests.own_models:Noisy"}}
"""A user's own model with dropout, whose keys must not depend on the engine."""
NORMALISED = {"kind": "python", "build": "tests.reference.test_statistics:Normalised"}


def vafl(**algorithm: Any) -> tuple[dict[str, Any], ...]:
    return ({"algorithm": algorithm},)


def sgd(*more: dict[str, Any], **algorithm: Any) -> tuple[dict[str, Any], ...]:
    kind = algorithm.get("kind", "sgd")
    method = {**STEP, "kind": kind, **algorithm}
    given = {key: value for key, value in method.items() if value is not None}
    return ({**SGD, "algorithm": given}, *more)


FAMILIES = {
    "vafl batch": ({},),
    "vafl all": vafl(**NAMED, upload="all"),
    "vafl query first": vafl(**NAMED, client_order="query_first"),
    "vafl after": vafl(server_gradient="after"),
    "vafl t-sync": ({"protocol": {"kind": "t_synchronous", "t": 3}},),
    "vafl sync": (
        *vafl(**MUON),
        SYNCHRONOUS,
        {"problem": {"model": {"kind": "mlp"}, "server": None}},
    ),
    "vafl centralised": ({"protocol": {"kind": "centralised"}},),
    "vafl private": vafl(perturbation={"std": 0.1}),
    "vafl bounded": (
        *vafl(**NAMED),
        {"protocol": {"kind": "bounded", "staleness_bound": 3}},
    ),
    "fed_bcd": (*vafl(**NAMED | PARTIES), ROUNDS),
    "fed_bcd, deep": (*vafl(**NAMED | PARTIES), {"problem": DEEP}),
    "sgd": sgd(),
    "sgd sync": sgd(SYNCHRONOUS),
    "sgd t-sync": sgd(
        {"protocol": {"kind": "t_synchronous", "t": 2}},
        {"problem": {"model": {"kind": "dense", "hidden": [6]}}},
        **MUON,
    ),
    "sgd compensated, adam": sgd(
        compensation={"strength": 0.1, "adaptive": True},
        optimizer={"kind": "adam"},
        mechanism={"clip_bound": 1.0, "multiplier": 0.1},
    ),
    "sgd, local": sgd({"protocol": {"kind": "t_synchronous", "t": 3}}, **KEPT),
    "shares so far": sgd(weight={"kind": "inverse_share"}),
    "throttle": sgd(
        {"protocol": {"restarts": True}}, weight={"kind": "repeats", "base": 2}
    ),
    "delayed Nesterov": sgd(
        optimizer={"kind": "delayed_nesterov", "period": 3, "look_ahead": True}
    ),
    "fed_async": sgd(kind="fed_async", **KEPT),
    "fed_avg": sgd({"problem": UNEVEN}, SYNCHRONOUS, kind="fed_avg", local_epochs=1),
    "fed_buff": sgd(BUFFERED, kind="fed_buff", **KEPT | NAMED, staleness_threshold=1),
    "malenia": sgd(
        {"protocol": {"kind": "collect", "harmonic_mean": 1.4}}, kind="malenia"
    ),
    "ringleader": sgd({"protocol": {"kind": "phases"}}, kind="ringleader"),
    "aced": sgd(WARM, kind="ia2sgd", max_age=8),
    "ca2fl": sgd(BUFFERED, kind="ca2fl"),
    "psgd": sgd({"protocol": {"kind": "gossip"}}, kind="psgd", **NAMED),
    "own model": sgd(BUFFERED, {"problem": OWN}, kind="fed_buff", local_steps=2),
    "batch statistics": sgd(
        BUFFERED,
        {"problem": {"model": NORMALISED, "l2": 0.0}},
        kind="fed_buff",
        local_steps=2,
    ),
    "own model in gossip": sgd(
        {"protocol": {"kind": "gossip"}, "problem": OWN}, kind="psgd"
    ),
    "mapa": sgd(kind="mapa", epsilon=1.0),
    "audp averaged": sgd(
        {"protocol": {"kind": "cyclic"}}, kind="audp", epsilon=1.0, averaged=True
    ),
    **of_extras("FAMILIES"),
}
DOUBLE = {"engine": {"precision": "float64"}, "stop": {"commits": 80}}
DOUBLE |= {"evaluate": {"every": {"commits": 20}}}
NUMBERS = ("loss", "gradient_norm", "step_size")
ALWAYS = ("vafl batch", "sgd", "mapa")


def at_rate(changes: tuple[dict[str, Any], ...], rate: float) -> dict[str, Any]:
    """Returns the change by which a family steps at another rate."""
    algorithm = scenario(*changes).algorithm
    for place in ("optimizer", "local_optimizer"):
        if hasattr(getattr(algorithm, place, None), "learning_rate"):
            return {"algorithm": {place: {"learning_rate": rate}}}
    return {"algorithm": {"step_size": rate}}


@pytest.mark.parametrize(
    "family",
    [
        name if name in ALWAYS else pytest.param(name, marks=pytest.mark.long)
        for name in FAMILIES
    ],
)
def test_modes_agree_in_float64(family: str) -> None:
    """Batched are runs of other seeds, shared those of other rates."""
    usual = (*FAMILIES[family], DOUBLE)
    rates = [at_rate(usual, rate) for rate in (0.03, 0.07)]
    with jax.enable_x64(True):
        alone = [prepared(*usual, rates[1], number=1) for _ in range(2)]
        compiled, _ = execute(alone[:1])
        others = {"stepwise": execute(alone[1:], "stepwise")[0]}
        seeds = [
            prepared(*usual, rates[1], seed=seed, number=number)
            for number, seed in enumerate((2, 1))
        ]
        others["batched"], _ = execute(
            prepare_together([r.run for r in seeds]), "batched"
        )
        shared = [prepared(*usual, rate, number=i) for i, rate in enumerate(rates)]
        assert len({structure(run.scenario) for run in shared}) == 1
        others["shared"], _ = execute(shared, "shared")
    # Columns of commits are written as float32.
    near = {"commits": 1e-6, "evaluations": 1e-8}
    columns = [("commits", name) for name in NUMBERS]
    columns += [("evaluations", name) for name in alone[0].scenario.evaluate.metrics]
    for table, name in columns:
        expected = compiled.column(table, name, 1)
        assert expected.size >= 5 or name in NUMBERS
        for mode, found in others.items():
            np.testing.assert_allclose(
                found.column(table, name, 1), expected, near[table], err_msg=mode
            )
    losses = [others["shared"].column("evaluations", "test_loss", i) for i in (0, 1)]
    assert not np.allclose(*losses, rtol=1e-6)


TWO = {"protocol": {"kind": "t_synchronous", "t": 2}}
ADAM = {"kind": "adam", "learning_rate": 0.1, "state": "kept"}
ROWS = ("sgd", "sgd sync", "sgd compensated, adam", "mapa", "audp averaged")
WAVES = {
    **{name: FAMILIES[name] for name in ROWS},
    "sgd t-sync": sgd(TWO),
    "fed_async": sgd(kind="fed_async", local_steps=2),
    "fed_buff": sgd(BUFFERED, kind="fed_buff", local_steps=2),
    "optimisers of clients": sgd(BUFFERED, local_steps=2, local_optimizer=ADAM),
    **of_extras("WAVES"),
}


def measured(family: str) -> tuple[str, ...]:
    """Returns the measures that commits of a family have."""
    weights = () if family in ("mapa", "audp averaged") else ("weight",)
    return ("loss", "gradient_norm", "step_size", *weights)


@pytest.mark.parametrize("family", WAVES)
def test_waves_are_rows_to_the_bit_on_any_number_of_devices(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows of one gradient differ from waves of single messages in last digits.
    monkeypatch.setattr(simulation, "_joined", lambda *_: [])
    changes = (*WAVES[family], {"engine": {"mode": "waves"}})
    rows, _ = execute([prepared(*WAVES[family])])
    plan = prepared(*changes)
    waves, ends = execute([plan], "waves")
    devices = 2 if jax.default_backend() == "cpu" else len(jax.local_devices())
    assert (ends[0]["mode"], ends[0]["devices"]) == ("waves", devices)
    for name in (*measured(family), "test_loss"):
        table = "evaluations" if name == "test_loss" else "commits"
        expected = rows.column(table, name)
        assert expected.size > 4
        np.testing.assert_array_equal(waves.column(table, name), expected, name)
    kernel: Any = plan.kernel
    program = Waves(kernel, plan.problem, jax.local_devices()[:1])
    alone = list(simulation._runner([plan], program).records())
    found = np.concatenate([r.infos["loss"] for r in alone if r])
    np.testing.assert_array_equal(
        found.astype(np.float32), rows.column("commits", "loss")
    )


def test_waves_continue_from_what_was_kept() -> None:
    plan = prepared(SGD, {"engine": {"mode": "waves", "chunk": 64}})
    kernel: Any = plan.kernel

    def runner() -> Runner:
        some = jax.local_devices()
        program = Waves(kernel, plan.problem, some)
        return simulation._runner([plan], program)

    whole, first, second = list(runner().records()), runner(), runner()
    begun = []
    for record in first.records(pauses=lambda: len(begun) == 1):
        if record is None:
            break
        begun.append(record)
    second.restore(first.state())
    rest = [record for record in second.records() if record is not None]
    losses = [
        np.concatenate([record.infos["loss"] for record in records if record])
        for records in (whole, begun + rest)
    ]
    np.testing.assert_array_equal(losses[0], losses[1])


def test_rows_that_are_not_divided_are_not_executed_in_waves() -> None:
    with pytest.raises(ScenarioError, match=r"engine.mode must be auto, .*'vafl'"):
        prepared({"engine": {"mode": "waves"}})


@pytest.mark.parametrize("chunk", [16, 50, 4096])
def test_buffers_do_not_change_a_trace(chunk: int) -> None:
    whole, _ = execute([prepared({"engine": {"chunk": 64}})])
    other, _ = execute([prepared({"engine": {"chunk": chunk}})])
    for table in ("commits", "jobs", "evaluations", "clients", "staleness"):
        for name in whole.tables[table][0]:
            if isinstance(whole.tables[table][0][name], np.ndarray):
                np.testing.assert_array_equal(
                    other.column(table, name), whole.column(table, name), name
                )


def test_one_compilation_whatever_the_evaluation_points() -> None:
    execution._run.clear_cache()
    for every in (
        {"commits": 7},
        {"commits": 50},
        {"commits": None, "time": 0.37},
        {"commits": None, "epochs": 0.1},
    ):
        execute([prepared({"evaluate": {"every": every}})])
        execute([prepared({"evaluate": {"every": every}}, seed=2)])
    assert execution._run._cache_size() == 1


def test_a_step_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the shapes of its diagnostics and for the program of all rows."""
    traced = []
    checked = execution.checked
    monkeypatch.setattr(
        execution, "checked", lambda *of: traced.append(of) or checked(*of)
    )
    jax.clear_caches()
    execute([prepared()])
    assert len(traced) == 1


@pytest.mark.parametrize("family", ALWAYS)
def test_blocks_of_rows_are_rows_to_the_bit(family: str) -> None:
    run = prepared(*FAMILIES[family])
    feed = _row_stream(run, 64)
    feed.next(1)
    events = execution.null_events(64, run.timeline.width, run.samples)
    execution.put(events, 0, feed.next(64))
    program = execution.Program(run.kernel, run.problem)
    on_cpu = jax.default_backend() == "cpu"
    assert program._block == (1 if on_cpu else execution.BLOCK)

    def executed(block: int, first: int, last: int) -> list[np.ndarray]:
        program._block = block
        carry = program.start(jax.random.key(3), run.timeline.num_registers)
        infos = program.infos(carry, events)
        return arrays(program.run(carry, events, first, last, infos))

    for first, last in ((3, 3 + 2 * execution.BLOCK + 5), (3, 7), (0, 64), (5, 5)):
        alone, blocks = (executed(n, first, last) for n in (1, execution.BLOCK))
        for one, other in zip(alone, blocks, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_length_of_a_block_is_in_the_compiled_program() -> None:
    run = prepared(SGD)
    program = execution.Program(run.kernel, run.problem)
    carry = program.start(jax.random.key(3), run.timeline.num_registers)
    events = execution.null_events(64, run.timeline.width, run.samples)
    rows = run.kernel, run.problem, carry, events, np.int32(0), np.int32(64)
    known = f'"known_trip_count":{{"n":"{execution.BLOCK}"}}'
    for block, found in ((1, 0), (execution.BLOCK, 1)):
        compiled = execution._run.lower(
            *rows, program.infos(carry, events), batched=False, shared=True, block=block
        ).compile()
        text = compiled.as_text()
        assert text is not None
        assert text.count(known) == found


def arrays(carry: Any) -> list[np.ndarray]:
    """Returns everything that a carry holds, keys as their words."""
    leaves = [
        jax.random.key_data(leaf)
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        else leaf
        for leaf in jax.tree.leaves(carry)
    ]
    return [np.array(leaf) for leaf in leaves]


CACHED = dict.fromkeys(("malenia", "ringleader", "aced", "ca2fl"), "last vector")
CACHED |= of_extras("CACHED")
"""Families that keep something twice, which a null row moves without effect."""


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in CACHED])
def test_a_null_row_leaves_the_state_bit_identical(family: str) -> None:
    """By the program that `test_modes_agree_in_float64` compiles as well."""
    with jax.enable_x64(True):
        run = prepared(*FAMILIES[family], DOUBLE)
        program = execution.Program(run.kernel, run.problem)
        feed = _row_stream(run, 16)
        feed.next(1)
        events = execution.null_events(64, run.timeline.width, run.samples)
        execution.put(events, 0, feed.next(16))
        carry = program.start(jax.random.key(3), run.timeline.num_registers)
        first = arrays(carry)
        carry, infos = program.run(carry, events, 0, 16, program.infos(carry, events))
        before = arrays(carry)
        carry, _ = program.run(carry, events, 16, 32, infos)
        after = arrays(carry)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    assert any((one != other).any() for one, other in zip(first, before, strict=True))


@pytest.mark.parametrize("family", ["vafl batch", "vafl t-sync", "sgd", "sgd t-sync"])
def test_registers_hold_what_the_record_says(family: str) -> None:
    run = prepared(*FAMILIES[family])
    program = execution.Program(run.kernel, run.problem)
    rows_per_chunk = 32
    carry = program.start(jax.random.key(0), run.timeline.num_registers)
    feed: RowStream = _row_stream(run, rows_per_chunk)
    reads = 0
    while not feed.ended:
        piece = feed.next(rows_per_chunk)
        events = execution.null_events(rows_per_chunk, run.timeline.width, run.samples)
        execution.put(events, 0, piece)
        infos = program.infos(carry, events)
        carry, _ = program.run(carry, events, 0, piece.rows.time.size, infos)
        reads += int((piece.rows.read_slot != NO_SLOT).sum())
    assert int(carry.mismatches) == 0
    assert reads >= 200


def test_a_wrong_record_is_noticed() -> None:
    run = prepared(SGD)
    program = execution.Program(run.kernel, run.problem)
    carry = program.start(jax.random.key(0), run.timeline.num_registers)
    events = execution.null_events(16, 1, run.samples)
    events.worker[0], events.read_slot[0], events.kind[0] = 0, 0, 0
    events.version[0], events.staleness[0] = 5, 2  # slot 0 holds version 0, not 3
    carry, _ = program.run(carry, events, 0, 1, program.infos(carry, events))
    assert int(carry.mismatches) == 1


def test_a_diverging_run_stops_and_the_others_go_on() -> None:
    steps = [{"algorithm": {"step_size": s}} for s in (0.1, 1e30, 0.2)]
    runs = [prepared(SGD, s, number=i) for i, s in enumerate(steps)]
    memory, ends = execute(runs, "shared")
    assert [end["stop"] for end in ends] == ["commits", "diverged", "commits"]
    commits = memory.column("commits", "commit", 1)
    assert ends[1]["diverged_at_commit"] == commits[-1] < 200
    losses = memory.column("commits", "loss", 1)
    assert not np.isfinite(losses[-1])
    assert np.isfinite(losses[:-1]).all()
    alone, _ = execute([prepared(SGD, steps[2], number=2)])
    np.testing.assert_allclose(
        memory.column("commits", "loss", 2), alone.column("commits", "loss", 2), 1e-4
    )


def test_a_target_stops_at_its_evaluation_and_jobs_are_exact() -> None:
    goal = {"stop": {"target": {"test_accuracy": 0.9}}}
    every = {"evaluate": {"every": {"commits": 5}}}
    memory, ends = execute([prepared(goal, every)])
    accuracy = memory.column("evaluations", "test_accuracy")
    assert ends[0]["stop"] == "target"
    assert accuracy[-1] >= 0.9 > accuracy[:-1].max()
    commits = memory.column("evaluations", "commits")[-1]
    assert memory.column("commits", "commit")[-1] == commits < 200
    jobs = memory.column("jobs", "applied_time")
    assert np.isfinite(jobs).sum() == commits
    assert np.isnan(jobs).sum() <= 4
    keys = set(
        zip(
            memory.column("jobs", "client").tolist(),
            memory.column("jobs", "job").tolist(),
            strict=True,
        )
    )
    assert len(keys) == jobs.size


def test_the_grid_of_virtual_time_is_kept_to_the_end() -> None:
    memory, ends = execute(
        [
            prepared(
                {"stop": {"commits": None, "time": 3.0}},
                {"evaluate": {"every": {"commits": None, "time": 0.7}}},
            )
        ]
    )
    assert ends[0]["stop_reason"] == StopReason.TIME.value
    times = memory.column("evaluations", "time")
    np.testing.assert_allclose(times, [0, 0.7, 1.4, 2.1, 2.8, 3.0], rtol=1e-15)
    done = memory.column("commits", "time")
    commits = memory.column("evaluations", "commits")
    assert [(done <= t).sum() for t in times] == commits.tolist()


def test_same_scenario_same_seed_same_trace() -> None:
    first, _ = execute([prepared()])
    again, _ = execute([prepared()])
    other, _ = execute([prepared(seed=2)])
    for name in NUMBERS[:2]:
        one = first.column("commits", name)
        assert (one == again.column("commits", name)).all()
        assert (one != other.column("commits", name)).any()


def test_zero_noise_is_the_plain_run_bit_for_bit() -> None:
    for changes in (
        {},
        {"algorithm": {"upload": "all"}},
        {"protocol": {"kind": "synchronous"}},
    ):
        plain, _ = execute([prepared(changes)])
        silent, _ = execute(
            [prepared(changes, {"algorithm": {"perturbation": {"std": 0}}})]
        )
        for name in NUMBERS[:2]:
            assert (
                plain.column("commits", name) == silent.column("commits", name)
            ).all()


def test_the_algorithm_changes_nobodys_delays() -> None:
    one, _ = execute([prepared()])
    other, _ = execute([prepared({"algorithm": {"upload": "all", "step_size": 0.01}})])
    for name in ("client", "job", "read_time", "applied_time"):
        np.testing.assert_array_equal(
            one.column("jobs", name), other.column("jobs", name)
        )
