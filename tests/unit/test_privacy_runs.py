"""Privacy of whole runs: counts by the jobs table, budgets, and the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.analysis.spending import spending
from stalesim.simulator import studies
from stalesim.simulator.catalogue.algorithms.federated.part import Mechanism
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.catalogue.protocols.turns import Cyclic
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.files.timeline import NO_WORKER, Jobs, Kind, Outcome, StopReason
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.privacy.ledger import epsilon
from stalesim.simulator.privacy.parts import make
from stalesim.simulator.privacy.releases import Gaussian, Pure
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.studies import planning
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.links import Quota
from stalesim.simulator.world.workload import Workload
from tests.commands import stalesim
from tests.runs import execute
from tests.support import VAFL, Memory, everything

K = 5
AUDP: dict[str, Any] = {
    "name": "private",
    "problem": {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": K},
    },
    "clients": {"compute": {"law": "expon", "scale": "m"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {
        "kind": "audp",
        "epsilon": 0.1,
        "noise": "spherical_laplace",
        "clip": "sample",
        "sampling": "distinct",
        "clip_bound": 1.0,
    },
    "stop": {"commits": 300},
    "evaluate": {"every": {"commits": 43}},
    "privacy": {},
    "engine": {"chunk": 64},
}
LOSSY = {
    "compute": {"law": "expon", "scale": "m"},
    "upload": {"latency": {"law": "expon", "scale": 2.0}},
    "loss": {"chance": 0.4, "timeout": 1.0, "retries": 0},
}


def private(seed: int = 1, **changes: Any) -> Prepared:
    tree = {**AUDP, **changes}
    return prepare(Run(0, "base", {}, 0, seed, Scenario.model_validate(tree)))


def algorithm(**changes: Any) -> dict[str, Any]:
    return AUDP["algorithm"] | changes


def table(memory: Memory, accountant: str) -> list[dict[str, np.ndarray]]:
    """Returns the rows of one accountant, an evaluation after the other."""
    found = []
    for part in memory.tables["privacy"]:
        mine = np.array(part["accountant"].words)[part["accountant"].codes]
        kept = mine == accountant
        names = ("time", "client", "releases", "epsilon", "delta", "formal")
        found.append({name: part[name][kept] for name in names})
    return found


@pytest.mark.parametrize("clients", [AUDP["clients"], LOSSY], ids=["plain", "lossy"])
def test_epsilon_is_that_of_the_messages_that_each_client_had_sent(
    clients: dict[str, Any],
) -> None:
    levels = (0.1, 0.2, 0.1, 0.3, 0.4)
    plan = private(clients=clients, algorithm=algorithm(epsilon=levels))
    memory, ends = execute([plan])
    client = memory.column("jobs", "client")
    sent = memory.column("jobs", "sent_time")
    assert set(client[~np.isnan(sent)]) == set(range(K))
    parts = table(memory, "optimal")
    times = memory.column("evaluations", "time")
    assert [part["time"][0] for part in parts] == times.tolist()
    for number, part in enumerate(parts):
        time = times[number] if number + 1 < len(parts) else np.inf
        for k, level in enumerate(levels):
            count = int((sent[client == k] <= time).sum())
            assert part["releases"][k] == count
            accountant = make("optimal")
            accountant.release(count, Pure(level))
            assert part["epsilon"][k] == accountant.epsilon(1e-5)
    last = parts[-1]
    np.testing.assert_array_equal(
        memory.column("clients", "releases"), last["releases"]
    )
    assert np.unique(last["releases"]).size > 2  # some work faster than others
    assert last["formal"].all()
    assert ends[0]["privacy"]["formal"]
    assert ends[0]["privacy"]["accountants"] == ["optimal", "advanced", "basic"]


def test_a_lossy_link_does_not_lower_epsilon() -> None:
    memory, _ = execute([private(clients=LOSSY)])
    sent = ~np.isnan(memory.column("jobs", "sent_time"))
    outcome = np.concatenate([p["outcome"].codes for p in memory.tables["jobs"]])
    assert (outcome[sent] == Outcome.LOST).sum() > 50
    last = table(memory, "basic")[-1]
    applied = memory.column("clients", "num_applied")
    assert last["releases"].sum() == sent.sum()
    assert (last["releases"] >= applied).all()
    assert last["releases"].sum() > 1.3 * applied.sum()
    np.testing.assert_allclose(last["epsilon"], 0.1 * last["releases"], rtol=1e-12)


def jobs_of(clients: Any, protocol: Any, server: Any = None, **more: Any) -> Jobs:
    stop, quota = more.pop("stop"), more.pop("quota", None)
    laws = Clients.model_validate(clients)
    plan = SimulatedTimeline(
        laws, protocol, 4, 1, Stop(**stop), Workload(8, 8, 4), server=server or Server()
    )
    if quota is not None:
        from dataclasses import replace

        plan = replace(plan, quota=Quota(quota))
    return everything(plan)[1]


def test_what_is_on_its_way_when_the_run_ends_has_been_sent() -> None:
    slow = {"law": "constant", "value": 10.0}
    one = {"law": "constant", "value": 1.0}
    link = {"compute": one, "upload": {"latency": slow}}
    jobs = jobs_of(link, Asynchronous(), stop={"time": 5.0})
    assert (jobs.outcome == Outcome.IN_FLIGHT).all()
    assert jobs.sent_time.tolist() == jobs.computed_time.tolist() == [1.0] * 4
    assert np.isnan(jobs.arrived_time).all()
    assert jobs.uploads.tolist() == [1] * 4
    # Sent at the last instant, and not before.
    assert jobs_of(link, Asynchronous(), stop={"time": 1.0}).uploads.sum() == 4
    early = jobs_of(link, Asynchronous(), stop={"time": 0.5})
    assert np.isnan(early.sent_time).all()
    assert early.uploads.sum() == 0
    # Arrived, and waiting for others, for the server, or in a buffer.
    staggered = {"compute": {"law": "constant", "value": [1.0, 2.0, 3.0, 9.0]}}
    waiting = jobs_of(staggered, Synchronous(), stop={"time": 5.0})
    assert waiting.arrived_time[:3].tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(waiting.sent_time[3])
    queued = jobs_of(
        staggered,
        Asynchronous(),
        Server.model_validate({"service": {"law": "constant", "value": 100.0}}),
        stop={"time": 5.0},
    )
    assert queued.arrived_time[:3].tolist() == [1.0, 2.0, 3.0]
    buffered = jobs_of(staggered, Buffered(size=100), stop={"time": 1.5})
    assert buffered.sent_time[buffered.outcome == Outcome.BUFFERED].tolist() == [1.0]


def test_a_message_that_is_repeated_has_been_sent_as_often_as_time_allowed() -> None:
    clients = {
        "compute": {"law": "constant", "value": 1.0},
        "loss": {"chance": 0.999, "timeout": 2.0, "retries": 9},
    }
    jobs = jobs_of(clients, Asynchronous(), stop={"time": 5.5})
    assert jobs.sent_time.tolist() == [1.0] * 4
    assert jobs.uploads.tolist() == [3] * 4  # at 1, 3 and 5


def test_a_finished_job_says_nothing_of_the_next() -> None:
    plain = {"compute": {"law": "constant", "value": [1.0, 1.0, 1.0, 3.0]}}
    jobs = jobs_of(plain, TSynchronous(t=2), stop={"commits": 3})
    flying = jobs.outcome == Outcome.IN_FLIGHT
    sent = jobs.sent_time[flying]
    assert (np.isnan(sent) | (sent > jobs.read_time[flying])).all()


CRASHING = {
    "compute": {"law": "expon", "scale": "m"},
    "upload": {"latency": {"law": "expon", "scale": 2.0}},
    "crashes": {"after": {"law": "expon", "scale": 9}, "down": {"law": "expon"}},
    "loss": {"chance": 0.3, "timeout": 1.0},
}
LATTICE = {
    "compute": {"law": "constant", "value": 1},
    "upload": {"latency": {"law": "constant", "value": 1}},
}
WORLDS: dict[str, tuple[Any, dict[str, Any], Server]] = {
    "plain": (Asynchronous(), {"compute": {"law": "expon", "scale": "m"}}, Server()),
    "crashing": (Asynchronous(), CRASHING, Server()),
    "shared link": (
        Asynchronous(),
        CRASHING,
        Server(upload_bandwidth=20.0, download_bandwidth=20.0),
    ),
    "late": (Synchronous(deadline=2.0), CRASHING, Server()),
    "ties": (Asynchronous(), LATTICE, Server()),
    "buffer": (Buffered(size=3), CRASHING, Server()),
    "waiting": (
        TSynchronous(t=3),
        {"compute": {"law": "expon", "scale": "m"}},
        Server(),
    ),
    "rejecting": (Asynchronous(staleness_bound=1, beyond="reject"), CRASHING, Server()),
    "cyclic": (Cyclic(), {"compute": {"law": "expon"}}, Server()),
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("quota", [(50, 4, 9, 1), (1, 1, 1, 1)])
def test_a_run_ends_just_before_a_message_too_many(
    name: str, quota: tuple[int, ...]
) -> None:
    protocol, clients, server = WORLDS[name]
    options: dict[str, Any] = {
        "clients": Clients.model_validate(clients),
        "protocol": protocol,
        "num_clients": 4,
        "seed": 2,
        "stop": Stop(time=400.0),
        "workload": Workload(8, 8, 4),
        "server": server,
    }
    limited = SimulatedTimeline(**options, quota=Quota(quota))
    rows, jobs, reason = everything(limited, 16)
    assert reason is StopReason.PRIVACY
    sent = ~np.isnan(jobs.sent_time)
    counts = np.bincount(jobs.client[sent], minlength=4)
    assert (counts <= quota).all()
    # Somebody has sent all that it may, and the next thing it does is to send again.
    free, more, _ = everything(SimulatedTimeline(**options), 16)
    spent = np.flatnonzero(counts == quota)
    assert spent.size
    end = max(
        rows.time[-1] if rows.time.size else 0.0,
        np.max(jobs.sent_time[sent], initial=0),
    )
    following = [
        np.sort(more.sent_time[(more.client == k) & ~np.isnan(more.sent_time)])[
            quota[k]
        ]
        for k in spent
    ]
    first = min(following)
    assert first >= end
    everyone = [
        np.sort(more.sent_time[(more.client == k) & ~np.isnan(more.sent_time)])
        for k in range(4)
    ]
    exceeding = [
        times[q] for times, q in zip(everyone, quota, strict=True) if times.size > q
    ]
    assert min(exceeding) == first
    # Until then it is the same timeline, whose other player may number registers anew.
    n = rows.time.size
    for name, mine in rows._asdict().items():
        if name not in ("read_slot", "write_slot"):
            other = getattr(free, name)
            np.testing.assert_array_equal(mine[: n - 1], other[: n - 1], name)
    assert n == 0 or (rows.worker[-1] == free.worker[n - 1]).all()
    assert limited.digest != SimulatedTimeline(**options).digest
    again = everything(limited, 1000)
    np.testing.assert_array_equal(again[0].time, rows.time)


@pytest.mark.parametrize("clients", [AUDP["clients"], LOSSY], ids=["plain", "lossy"])
def test_a_budget_ends_the_run_before_a_client_exceeds_it(
    clients: dict[str, Any],
) -> None:
    levels = (0.1, 0.2, 0.1, 0.3, 0.4)
    plan = private(
        clients=clients,
        privacy={"budget": 2.0, "accountants": ["advanced", "optimal"]},
        algorithm=algorithm(epsilon=levels),
    )
    memory, ends = execute([plan])
    assert ends[0]["stop"] == "privacy"
    assert ends[0]["stop_reason"] == "a privacy budget was spent"
    last = table(memory, "advanced")[-1]
    assert (last["epsilon"] <= 2.0).all()
    after = [
        epsilon(Pure(level), int(n) + 1, "advanced", 1e-5)
        for level, n in zip(levels, last["releases"], strict=True)
    ]
    assert max(after) > 2.0
    free, _ = execute([private(clients=clients, algorithm=algorithm(epsilon=levels))])
    commits = ends[0]["commits"]
    np.testing.assert_array_equal(
        memory.column("commits", "loss"), free.column("commits", "loss")[:commits]
    )


def test_runs_with_other_budgets_do_not_share_a_timeline(tmp_path: Path) -> None:
    tree = AUDP | {
        "privacy": {"budget": 1.0},
        "sweep": {"algorithm.epsilon": [0.1, 0.3], "privacy.budget": [1.0, 2.0]},
    }
    study = studies.simulate(Scenario.model_validate(tree), tmp_path / "study")
    runs = study.manifest["runs"]
    assert [run["stop"] for run in runs] == ["privacy"] * 4
    assert len({run["timeline"] for run in runs}) == 4
    found = study.table("privacy")
    spent = found[found["accountant"] == "optimal"].groupby("run")["epsilon"].max()
    for run in runs:
        assert 0.5 < spent[run["run"]] <= run["parameters"]["privacy.budget"]
    found = spending(study)
    assert {*found.drop(columns="epsilon").itertuples(index=False, name=None)} == {
        ("formal", "one sample of one client, replaced", "optimal at δ = 1e-05")
    }
    assert len(found) == 4
    assert {*study.table("privacy")["protects"]} == {*found["protects"]}


def test_every_trace_says_whether_its_law_is_private() -> None:
    law = algorithm(noise="radial_exponential", clip="mean")
    memory, ends = execute([private(algorithm=law)])
    told = ends[0]["privacy"]
    assert told["mechanism"] == "radial exponential, clip: mean"
    assert not told["formal"]
    assert "M-01" in told["why"]
    assert not np.concatenate([p["formal"] for p in memory.tables["privacy"]]).any()
    memory, ends = execute([private(algorithm=law, privacy=None)])
    assert not ends[0]["privacy"]["formal"]
    assert ends[0]["privacy"]["accountants"] == []
    assert "privacy" not in memory.tables
    _, ends = execute([private(algorithm={"kind": "asgd"}, privacy=None)])
    assert ends[0]["privacy"] is None


def test_an_early_end_counts_what_was_sent_until_then() -> None:
    memory, ends = execute([private(stop={"time": 200, "target": {"test_loss": 1e6}})])
    assert ends[0]["stop"] == "target"
    for part in table(memory, "basic"):
        assert (part["releases"] == 0).all()
    law = {"noise": "laplace", "clip_bound": 1e6}
    memory, ends = execute(
        [private(algorithm=algorithm(**law, step_size=1e38), clients=LOSSY)]
    )
    assert ends[0]["stop"] == "diverged"
    sent = ~np.isnan(memory.column("jobs", "sent_time"))
    expected = np.bincount(memory.column("jobs", "client")[sent], minlength=K)
    assert expected.sum() >= ends[0]["commits"] > 0
    last = table(memory, "basic")[-1]
    np.testing.assert_array_equal(last["releases"], expected)


def test_gaussian_mechanisms_are_accounted_for_by_each_clients_own_draw() -> None:
    plan = private(
        problem={
            "data": {"kind": "digits"},
            "partition": {"kind": "sizes", "clients": K, "weights": "m"},
        },
        algorithm={
            "kind": "sgd",
            "step_size": 0.1,
            "batch": 8,
            "mechanism": {"clip_bound": 1.0, "multiplier": 1.5},
        },
        privacy={"accountants": ["gdp"], "delta": 1e-6},
    )
    memory, ends = execute([plan])
    last = table(memory, "gdp")[-1]
    for k, n in enumerate(plan.shares.num_samples):
        release = Gaussian(1.5, 8 / n)
        expected = epsilon(release, int(last["releases"][k]), "gdp", 1e-6)
        assert last["epsilon"][k] == expected
    assert not last["formal"].any()  # a central-limit value
    assert ends[0]["privacy"]["formal"]


BUDGET = {"epsilon": 8.0, "releases": 60}
OF_CLIENT = {"clip": "contribution", "clip_bound": 1.0, "budget": BUDGET}


def budgeted(*changes: dict[str, Any], base: dict[str, Any] = AUDP) -> Run:
    """Returns a run whose noise is calculated for a budget."""
    tree: dict[str, Any] = base
    for change in changes:
        tree = merge(tree, change)
    return Run(0, "base", {}, 0, 1, Scenario.model_validate(tree))


def noisy(**mechanism: Any) -> dict[str, Any]:
    means = {"kind": "sgd", "step_size": 0.1, "batch": 8, "mechanism": mechanism}
    return AUDP | {"algorithm": means, "stop": {"time": 400}}


@pytest.mark.parametrize("privacy", [None, {}, {"accountants": ["gdp"]}])
def test_a_budget_that_noise_was_calculated_for_ends_the_run(
    privacy: dict[str, Any] | None,
) -> None:
    # Newcomer's finding: the clients sent 236 to 253 messages, for an epsilon of 19.5.
    tree = noisy(**OF_CLIENT) | {"privacy": privacy}
    jobs, reason = everything(timeline(budgeted(base=tree)))[1:]
    assert reason is StopReason.PRIVACY
    counts = np.bincount(jobs.client[~np.isnan(jobs.sent_time)], minlength=K)
    assert counts.max() == BUDGET["releases"]
    needed = Mechanism(**OF_CLIENT).multiplier_at(1.0)
    assert epsilon(Gaussian(needed), 60, "rdp", 1e-5) <= 8
    assert epsilon(Gaussian(needed), 61, "rdp", 1e-5) > 8


def test_a_stated_budget_takes_the_place_of_the_one_of_the_noise() -> None:
    half = noisy(**OF_CLIENT) | {"privacy": {"budget": 4.0}}
    jobs, reason = everything(timeline(budgeted(base=half)))[1:]
    assert reason is StopReason.PRIVACY
    counts = np.bincount(jobs.client[~np.isnan(jobs.sent_time)])
    needed = Mechanism(**OF_CLIENT).multiplier_at(1.0)
    most = int(counts.max())
    assert epsilon(Gaussian(needed), most, "rdp", 1e-5) <= 4
    assert epsilon(Gaussian(needed), most + 1, "rdp", 1e-5) > 4


def test_the_accountant_of_the_noise_is_the_first_one() -> None:
    tree = noisy(**OF_CLIENT | {"budget": BUDGET | {"accountant": "pld"}})
    ledger = prepare(budgeted({"privacy": {}}, base=tree)).ledger()
    assert ledger is not None
    assert ledger.accountants == ("pld", "rdp", "gdp")


@pytest.mark.parametrize("staleness_bound", [None, 2])
def test_a_level_mu_ends_the_run_after_its_releases(
    staleness_bound: int | None,
) -> None:
    bounded = {"kind": "bounded", "staleness_bound": staleness_bound}
    noise = {"mu": 1.0, "releases": 9, "input_diameter": 4.0}
    run = budgeted(
        {"algorithm": {"perturbation": noise, "upload": "batch"}},
        {"protocol": bounded} if staleness_bound else {},
        {"stop": {"time": 1e6, "commits": None, "epochs": None, "rounds": None}},
        base=VAFL,
    )
    rows, jobs, reason = everything(timeline(run))
    assert reason is StopReason.PRIVACY
    sent = np.bincount(jobs.client[~np.isnan(jobs.sent_time) & (jobs.refresh == 0)])
    again = rows.worker[rows.kind == Kind.REFRESH][:, 1:]
    again = again[again != NO_WORKER]
    assert bool(again.size) == bool(staleness_bound)
    assert (sent + np.bincount(again, minlength=sent.size)).max() == 9


def test_theorem_2_ends_the_run_after_its_steps() -> None:
    # The noise for T steps of all workers was then used for as many as there was time.
    means = {
        "kind": "adp2sgd",
        "step_size": 0.1,
        "batch": 1,
        "noise": {"budget": {"epsilon": 2.5, "iterations": 4_000}, "clip": "sample"},
    }
    gossip = {"protocol": {"kind": "gossip"}, "stop": {"time": 1e5}, "privacy": None}
    rows, _, reason = everything(
        timeline(budgeted(base=AUDP | gossip | {"algorithm": means}))
    )
    assert reason is StopReason.PRIVACY
    assert (rows.kind == Kind.COMMIT).sum() == 4_000


def test_budgets_tell_timelines_apart() -> None:
    tree = noisy(**OF_CLIENT)
    more = {"algorithm": {"mechanism": {"budget": {"releases": 61}}}}
    few, many = (budgeted(c, base=tree) for c in ({}, more))
    assert planning.timeline(few) != planning.timeline(many)


def test_a_timeline_with_a_budget_can_be_recorded() -> None:
    tree = AUDP | {"privacy": {"budget": 1.0}}
    run = Run(0, "base", {}, 0, 1, Scenario.model_validate(tree))
    assert everything(timeline(run))[2] is StopReason.PRIVACY


@pytest.mark.long
def test_calibrate_prints_the_noise_and_who_agrees() -> None:
    done = stalesim("calibrate", "--epsilon", 2, "--releases", 1000)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    multiplier = float(lines["noise"][1].rstrip(":"))
    assert epsilon(Gaussian(multiplier), 1000, "rdp", 1e-5) == pytest.approx(
        2, rel=1e-4
    )
    assert lines["rdp"][1:] == ["yes", "yes"]
    assert lines["pld"] == lines["gdp"]
    assert lines["Report"][-1] in ("pld", "gdp")
    assert "basic" not in lines
    options = ("--mechanism", "laplace", "--accountant", "optimal")
    done = stalesim("calibrate", "--epsilon", 2, "--releases", 1000, *options)
    one = next(x for x in done.stdout.splitlines() if x.startswith("epsilon of"))
    level = float(one.split()[-1])
    assert epsilon(Pure(level), 1000, "optimal", 1e-5) == pytest.approx(2, rel=1e-4)
    for wrong in (("--epsilon", 0), ("--mechanism", "loud"), ("--accountant", "gdpr")):
        done = stalesim(*("calibrate", "--epsilon", 2, "--releases", 9, *wrong))
        assert done.returncode == 2
        assert done.stderr.startswith("stalesim: ")
        assert done.stderr.count("\n") == 1
