"""Worlds that stand still or whose averages do not settle, by lint and by their end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import yaml
from typer.testing import CliRunner

from stalesim.analysis import doubts
from stalesim.simulator import studies
from stalesim.simulator.cli.commands import app
from stalesim.simulator.files.timeline import SINCE, StopReason, effects
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.timelines.base import Ending
from stalesim.simulator.world.clients import Clients
from tests.support import played

KINDS = {tag(part): part for part in parts("protocols")}
WAITING: list[tuple[dict[str, Any], int]] = [
    ({"kind": "asynchronous"}, 1),
    ({"kind": "synchronous"}, 6),
    ({"kind": "synchronous", "wait_for": 5}, 5),
    ({"kind": "synchronous", "wait_for": 5, "late": "stop"}, 5),
    ({"kind": "synchronous", "deadline": 7}, 1),
    ({"kind": "synchronous", "timeout": 10}, 1),
    ({"kind": "t_synchronous", "t": 4}, 4),
    ({"kind": "buffered", "size": 5}, 1),
    ({"kind": "collect", "count": 5}, 1),
    ({"kind": "collect", "count": 5, "repeats": False}, 5),
    ({"kind": "collect", "harmonic_mean": 1}, 6),
    ({"kind": "collect", "quota": 1}, 6),
    ({"kind": "phases"}, 6),
    ({"kind": "ssp", "slack": 1}, 1),
    ({"kind": "growing_bound"}, 1),
    ({"kind": "rounds"}, 6),
    ({"kind": "hierarchy", "edges": 2}, 6),
    ({"kind": "hierarchy", "edges": 2, "edge": "asynchronous"}, 2),
    ({"kind": "hierarchy", "edges": 2, "cloud": "asynchronous"}, 3),
]
"""Protocols, and how many of six clients they need."""


def world(protocol: dict[str, Any], gone: int) -> Any:
    """Returns the timeline of six clients, of whom some leave at 22 s."""
    options = {key: value for key, value in protocol.items() if key != "kind"}
    leave = tuple([1000] * (6 - gone) + [22] * gone)
    compute = {"law": "constant", "value": 5}
    clients = Clients.model_validate({"number": 6, "compute": compute, "leave": leave})
    return played(KINDS[protocol["kind"]](**options), clients, 6, time=100)


@pytest.mark.parametrize(("protocol", "least"), WAITING)
def test_a_world_says_since_when_it_stands_still(
    protocol: dict[str, Any], least: int
) -> None:
    for gone in range(7):
        timeline = world(protocol, gone)
        assert timeline.least_clients == least
        ending, commits = Ending(6, timeline.least_clients), [0.0]
        for chunk in timeline.chunks(50):
            ending.add(chunk)
            made = chunk.rows.time[effects(chunk.rows.kind).commits]
            commits += made.tolist()
            if chunk.stop is None:
                continue
            says = ending.words(chunk.stop)
        # The run lasts five times as long as any round of those who are there.
        stands = commits[-1] < 60
        assert says.startswith(SINCE) == stands, (gone, commits[-1], says)
        assert stands or says == StopReason.TIME.value
        assert not stands or says.startswith(f"{SINCE} {commits[-1]:.4g} s")
        if 6 - gone < least:
            assert stands


def told(folder: Path, tree: dict[str, Any], *command: str) -> tuple[int, str]:
    """Returns status and words of a command on a scenario of six clients."""
    own = {"name": "own", "clients": {"number": 6} | tree.pop("clients")}
    file = folder / "own.yaml"
    file.write_text(yaml.safe_dump(own | tree))
    done = CliRunner().invoke(app, [command[0], str(file), *command[1:]])
    return done.exit_code, " ".join(done.output.split())


def played_through(folder: Path, tree: dict[str, Any]) -> str:
    """Returns the last words of a timeline."""
    return told(folder, tree, "timeline", "-o", str(folder / "out"), "--no-plots")[1]


@pytest.mark.parametrize("end", [{"time": 100}, {"commits": 60}])
def test_lint_and_the_last_line_agree_under_every_stop(
    tmp_path: Path, end: dict[str, float]
) -> None:
    def tree(stop: dict[str, float]) -> dict[str, Any]:
        leave = [1000, 1000, 1000, 20, 20, 20]
        clients = {"compute": {"law": "constant", "value": 5}, "leave": leave}
        protocol = {"kind": "synchronous", "wait_for": 5}
        return {"clients": clients, "protocol": protocol, "stop": stop}

    after = "no commit came after 15 s: 3 of 6 clients are left, 5 are waited for"
    assert after in played_through(tmp_path, tree(end))
    status, words = told(tmp_path, tree(end), "lint", "--strict")
    assert status == 1
    assert "fewer are left from 20 s on" in words
    assert told(tmp_path, tree({"time": 15}), "lint", "--strict")[0] == 0


def test_laws_without_a_mean_are_told_wherever_they_stand() -> None:
    heavy = {"law": "pareto", "b": 0.8}
    nested = {"law": "mixture", "of": [{"law": "expon"}, heavy], "weights": [9, 1]}
    truncated = {"law": "truncated", "of": heavy, "high": 9}
    scaled = {"law": "scaled", "of": {"law": "halfcauchy"}, "scale": 2, "shift": 0}
    clients = {"compute": heavy, "idle": nested, "read": truncated, "restart": scaled}
    clients["upload"] = {"latency": {"law": "pareto", "b": "m/2"}}
    keys = [key for key, _ in doubts.without_mean({"clients": clients}, 5)]
    assert keys == [
        f"clients.{name}" for name in ("compute", "idle", "restart", "upload.latency")
    ]
    # With b = 1.5 and more, all have one.
    clients["upload"] = {"latency": {"law": "pareto", "b": "m/2 + 1"}}
    assert len([*doubts.without_mean({"clients": clients}, 5)]) == 3


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        ({"law": "lognorm", "s": 0.5, "scale": 2}, scipy.stats.lognorm(0.5).mean() * 2),
        ({"law": "constant", "value": "m"}, 3.0),
        ({"law": "zipf", "a": 2}, np.inf),
        ({"law": "zipf", "a": 4}, scipy.stats.zipf(4).mean()),
        ({"law": "loguniform", "a": 1, "b": 2}, 1 / np.log(2)),
    ],
)
def test_means_are_those_of_the_laws(law: dict[str, Any], expected: float) -> None:
    assert doubts.mean(law, 5) == pytest.approx(expected, rel=1e-9)
    mixture = {"law": "mixture", "of": [law, {"law": "expon"}], "weights": [1, 3]}
    assert doubts.mean(mixture, 5) == pytest.approx((expected + 3) / 4, rel=1e-9)


def test_a_sweep_over_laws_of_unequal_means_is_told() -> None:
    unequal = [{"law": "expon"}, {"law": "lognorm", "s": 1.5}]
    equal = [{"law": "expon"}, {"law": "lognorm", "s": 1, "scale": "exp(-0.5)"}]

    of_equal, of_unequal = (
        [
            {
                "parameters": {"clients.compute": law},
                "scenario": {"clients": {"compute": law}},
                "num_clients": 3,
            }
            for law in laws
        ]
        for laws in (equal, unequal)
    )
    ((key, line),) = doubts.unequal_means(of_unequal)
    assert key == "clients.compute"
    assert "expon 1 s, lognorm(s=1.5) 3.08 s" in line
    assert not [*doubts.unequal_means(of_equal)]


def test_the_closing_table_counts_overdue_rounds_and_stopped_jobs(
    tmp_path: Path,
) -> None:
    compute = {"law": "constant", "value": [5, 5, 5, 7]}
    protocol = {"kind": "synchronous", "deadline": 2, "late": "stop"}
    tree = {"clients": {"number": 4, "compute": compute}, "protocol": protocol}
    words = played_through(tmp_path, tree | {"stop": {"time": 100}})
    assert "20 of 20 rounds were longer than their 2 s, as nothing had arrived" in words
    # Of four jobs a round, that of client 4 is stopped.
    assert "crashed stopped" in words
    assert "base 0.75 0 0 0 0.25 0 0" in words


def test_clients_whose_updates_are_all_too_stale_are_named(tmp_path: Path) -> None:
    compute = {"law": "constant", "value": [1, 1, 1, 10]}
    protocol = {"kind": "asynchronous", "max_staleness": 5}
    tree = {"clients": {"number": 4, "compute": compute}, "protocol": protocol}
    words = played_through(tmp_path, tree | {"stop": {"time": 60}})
    assert "max_staleness 5 rejected every update of 1 client (4): raise it" in words


@pytest.mark.slow
def test_overdue_rounds_of_runs_are_counted_by_their_commits(tmp_path: Path) -> None:
    """A round of five clients has a row for each contribution but the last."""
    compute = {"law": "constant", "value": 5}
    tree = {
        "name": "late",
        "seed": 1,
        "problem": {
            "data": {"kind": "digits"},
            "partition": {"kind": "iid", "clients": 5},
        },
        "clients": {"compute": compute},
        "protocol": {"kind": "collect", "seconds": 4},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
        "stop": {"commits": 20},
        "evaluate": {"every": {"commits": 20}},
    }
    study = studies.simulate(tree, tmp_path / "s")
    (line,) = doubts.overdue(study)
    assert line.startswith("base: 20 of 20 rounds were longer than their 4 s")


@pytest.mark.parametrize(
    ("stop", "many"),
    [
        ({"time": 1}, True),
        ({"time": 1, "contributions": 500}, False),
        ({"time": 0.01}, False),
    ],
)
def test_more_jobs_than_can_be_played_are_told_before(
    stop: dict[str, float], many: bool, tmp_path: Path
) -> None:
    clients = {"compute": {"law": "expon", "scale": 1e-9}}
    tree = {"clients": clients, "protocol": {"kind": "asynchronous"}, "stop": stop}
    status, words = told(tmp_path, tree, "lint", "--strict")
    assert status == many
    assert ("about 6e+09 jobs come until stop.time" in words) == many
