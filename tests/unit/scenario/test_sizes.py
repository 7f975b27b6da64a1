"""Sizes beyond all bounds: accepted or one line, soon, and without taking memory.

Every entry of every class that may be a whole number takes huge values, in one of the
scenarios below.
"""

import contextlib
import inspect
import json
import resource
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from stalesim.simulator import studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.parts.base import MOST_CLIENTS, NESTED, Config, tag
from stalesim.simulator.parts.catalogue import BASES, own
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.parts.messages import first_error
from stalesim.simulator.privacy.budgets import calibrated
from stalesim.simulator.scenario.reading import loads, validated
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import MOST_RUNS, expand, merge
from stalesim.simulator.studies import sizes
from tests.golden.every import CASES
from tests.support import of_extras, table

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="memory is limited as Linux does it"
)
HUGE = (10**6 + 1, 10**9, 10**12, 10**18)
MOST_CPU_S = 15.0
"""Of one value, several times what is needed: other tests may run beside it."""
MOST_BYTES = 2**30

TABLE = table(__file__)
SGD, GOSSIP, WORLD = (TABLE["bases"][name] for name in ("sgd", "gossip", "world"))
TREES: dict[str, dict[str, Any]] = {
    name: merge(TABLE["bases"][base], changes)
    for name, (base, changes) in TABLE["trees"].items()
}
TREES |= {name: CASES[name] for name in TABLE["pinned"]} | of_extras("TREES")
BIG_MODELS = ("mlp", "dense", "cnn", "lstm", "text", *of_extras("BIG_MODELS"))
NEED_FILES = of_extras("NEED_FILES")
Keys = tuple[str | int, ...]


def data(**entries: Any) -> dict[str, Any]:
    return merge(SGD, {"problem": {"data": entries}})


def gossip(graph: dict[str, Any], clients: int = 4, **protocol: Any) -> dict[str, Any]:
    changes = {
        "problem": {"partition": {"clients": clients}},
        "protocol": {"graph": graph, **protocol},
    }
    return merge(GOSSIP, changes)


def types(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    return {annotation}.union(*map(types, inner)) if inner else {annotation}


def configs(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Config]]:
    """Yields every configuration in another one, and where it stands."""
    inner: Any = ()
    if isinstance(value, Config):
        yield keys, value
        inner = ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list | tuple):
        inner = enumerate(value)
    for key, part in inner:
        if isinstance(part, NESTED):
            yield from configs(part, (*keys, key))


def owner(kind: type[Config], name: str) -> tuple[str, str]:
    """Returns the class that an entry was written in, and its name."""
    mine = (c for c in kind.__mro__ if name in inspect.get_annotations(c))
    return next(mine).__name__, name


def numbers(kind: type[Config]) -> list[str]:
    """Returns the entries of a class that may be whole numbers."""
    fields = kind.model_fields.items()
    return [name for name, field in fields if int in types(field.annotation)]


TREES |= {
    tag(part): CASES[tag(part)]
    for part in own("algorithms")
    if tag(part) in CASES
    and any(owner(part, n)[0] == part.__name__ for n in numbers(part))
}
"""Scenarios that together have every entry that may be a whole number; algorithms with
one of their own, of which nothing more need be said, come by themselves."""


def leaves(value: Any, keys: Keys) -> Iterator[Keys]:
    inner: Any = None
    if isinstance(value, list | tuple):
        inner = enumerate(value)
    elif isinstance(value, dict):
        inner = value.items()
    if inner is None:
        if not isinstance(value, bool | Config):
            yield keys
        return
    for key, part in inner:
        yield from leaves(part, (*keys, key))


def scenario_of(tree: dict[str, Any]) -> Any:
    return (Scenario if "problem" in tree else WorldScenario).model_validate(tree)


@cache
def cases() -> dict[str, list[Keys]]:
    """Returns which entries each scenario is for: those that none before it has."""
    known: set[Any] = set()
    found: dict[str, list[Keys]] = {}
    for name, tree in TREES.items():
        found[name] = []
        for keys, config in configs(scenario_of(tree)):
            for entry in numbers(type(config)):
                for place in leaves(getattr(config, entry), (*keys, entry)):
                    told = (*owner(type(config), entry), *place[len(keys) + 1 :])
                    if told not in known:
                        known.add(told)
                        found[name].append(place)
    return found


def replaced(tree: Any, keys: Keys, value: Any) -> Any:
    if not keys:
        return value
    first, *rest = keys
    if first == "parameters" and first not in tree:  # they stand next to a name
        return replaced(tree, tuple(rest), value)
    copy = list(tree) if isinstance(tree, list | tuple) else dict(tree)
    old = copy[first] if isinstance(copy, list) else copy.get(first)  # pyright: ignore
    copy[first] = replaced(old, tuple(rest), value)  # pyright: ignore
    return copy


def judge(tree: dict[str, Any], *, estimate: bool) -> None:
    """Does what a dry run does, or the beginning of a timeline."""
    if "problem" in tree:
        _, tasks = studies.planned(validated(tree))
        if estimate:
            sizes.memory(tasks, 1)
        return
    try:
        scenario = WorldScenario.model_validate(tree)
    except ValidationError as error:
        _, message = first_error(error, tree, WorldScenario)
        raise ScenarioError(message) from None
    assert timeline(expand(scenario)[0]).digest


class TooSlowError(Exception):
    """It took too much of a processor's time."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Limits processor time and memory."""

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, limits)


@pytest.fixture(autouse=True)
def _characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data folder holds characters, a set that must be there."""
    monkeypatch.setenv("STALESIM_DATA", str(tmp_path))
    rows = {"x": [[0.5] * 784] * 10, "y": [0, 1] * 5}
    users = ["ann", "bob", "eve"]
    for half in ("train", "test"):
        path = tmp_path / "femnist" / half / "all_data.json"
        path.parent.mkdir(parents=True)
        path.write_text(
            json.dumps({"users": users, "user_data": dict.fromkeys(users, rows)})
        )


@pytest.mark.parametrize("name", TREES)
def test_huge_numbers_are_accepted_or_one_line(name: str) -> None:
    tree = scenario_of(TREES[name]).model_dump(mode="json")
    if name not in NEED_FILES:
        judge(tree, estimate=False)
    wrong = []
    for keys in cases()[name]:
        for value in HUGE:
            try:
                with limited():
                    changed = replaced(tree, keys, value)
                    judge(changed, estimate=name in BIG_MODELS)
            except UserError as error:
                if "\n" in str(error) or len(str(error)) > 400:
                    wrong.append((keys, value, str(error)))
            except (Exception, MemoryError) as error:
                told = f"{type(error).__name__}: {error}"
                wrong.append((keys, value, told[:200]))
    assert wrong == []


def test_every_whole_number_has_its_turn() -> None:
    known: set[type[Config]] = set()
    todo: list[Any] = [Scenario, WorldScenario]
    parts = [part for kind in BASES for part in own(kind)]
    todo += [part for part in parts if isinstance(part, type)]  # no records
    while todo:
        kind = todo.pop()
        if isinstance(kind, type) and issubclass(kind, Config) and kind not in known:
            known.add(kind)
            for field in kind.model_fields.values():
                todo += types(field.annotation)
    every = {owner(kind, name) for kind in known for name in numbers(kind)}
    assert len(every) > 80
    tried = {
        owner(type(config), name)
        for tree in TREES.values()
        for _, config in configs(scenario_of(tree))
        for name in numbers(type(config))
    }
    # A search is not run as it stands; see tests/unit/studies/test_tuning.py.
    lacking = every - tried - {("Tune", "trials")}
    assert not lacking, f"test_sizes.yaml needs a tree with each of {lacking}"


def test_a_study_has_so_many_runs() -> None:
    text = "\n".join(f"{k}: {v!r}".replace("'", '"') for k, v in SGD.items())
    for number in (MOST_RUNS + 1, 10**6, 10**18):
        with pytest.raises(ScenarioError, match=r"override .* at most 20,000 runs"):
            loads(text, "s.yaml", [f"replicates={number}"])
    with limited():
        assert (
            loads(text, "s.yaml", [f"replicates={MOST_RUNS}"]).replicates == MOST_RUNS
        )
    axis = {"from": 0.1, "to": 0.9, "num": 101}
    sweep = {"algorithm.step_size": axis, "problem.l2": axis}
    with (
        limited(),
        pytest.raises(ScenarioError, match=r"most 10,000 .*, got 10,201 \(101 x 101\)"),
    ):
        validated(SGD | {"sweep": sweep})
    ranged = {"problem.l2": {"from": 1, "to": 9999, "num": 9999, "whole": True}}
    many = {f"v{number}": {} for number in range(11)}
    with limited(), pytest.raises(ScenarioError, match="got 109,989 points of all var"):
        validated(SGD | {"sweep": ranged, "variants": many})
    with limited(), pytest.raises(ScenarioError, match=r"of each of 101 variants and"):
        validated(SGD | {"sweep": {"problem.l2": axis}, "replicates": 1000})


def test_clients_of_all_groups_count_together() -> None:
    half = {"number": MOST_CLIENTS // 2 + 1}
    groups = {"clients": {"number": None, "groups": {"a": half, "b": half}}}
    with limited(), pytest.raises(ValidationError, match="at most 1,000,000 in all"):
        WorldScenario.model_validate(merge(WORLD, groups))


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (gossip({"kind": "complete"}, 1500), "'complete' of 1,500 workers with 1,124"),
        (gossip({"kind": "bipartite"}, 2100), "'bipartite' of 2,100 workers"),
        (
            gossip({"kind": "erdos_renyi", "probability": 0.01}, 1500),
            "'erdos_renyi' of 1,500 workers",
        ),
        (gossip({"kind": "ring"}, 100_001), "at most 100,000 workers that average in"),
        (
            gossip({"kind": "ring"}, 2001, average="neighbours"),
            "at most 2,000 workers that average all at once",
        ),
        (merge(GOSSIP, {"problem": {"partition": {"clients": 2001}}}), ""),
    ],
)
def test_workers_and_pairs_have_limits(tree: dict[str, Any], says: str) -> None:
    if not says:
        with limited():
            validated(merge(tree, {"protocol": {"graph": {"kind": "ring"}}}))
        tree = merge(tree, {"protocol": {"average": "all"}})
        says = "at most 2,000 workers that average all at once"
    with limited(), pytest.raises(ScenarioError, match=says):
        validated(tree)


@pytest.mark.parametrize(
    ("accountant", "mechanism", "most"),
    [
        ("pld", "gaussian", 10**5),
        ("optimal", "spherical_laplace", 10**8),
        ("rdp", "gaussian", 10**8),
    ],
)
def test_noise_is_found_for_so_many_releases(
    accountant: str, mechanism: str, most: int
) -> None:
    told = f"releases must be from 1 to {most:,} by {accountant}, got"
    for number in (most + 1, 10**18):
        with limited(), pytest.raises(UserError, match=told):
            calibrated(5.0, 1e-5, number, mechanism, 1.0, accountant)


def test_a_row_has_so_many_frames() -> None:
    longest = data(kind="synthetic_series", labels="frame", frames=10_000, features=2)
    lstm = {"problem": {"model": {"kind": "lstm", "frames": 10_000}}}
    with limited(), pytest.raises(UserError) as error:
        studies.planned(validated(merge(longest, lstm)))
    assert "\n" not in str(error.value)


def test_drawn_data_fit_in_memory() -> None:
    fits = data(kind="synthetic_logistic", num_samples=50_000, num_features=1000)
    with limited():
        validated(fits)
        found = merge(fits, {"problem": {"data": {"num_samples": 50_001}}})
        with pytest.raises(ScenarioError, match=r"at most 50,000,000, got 50,001 x"):
            validated(found)
