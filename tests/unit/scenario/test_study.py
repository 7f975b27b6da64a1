"""Variants, sweep points and replicates; and back to YAML."""

from typing import Any

import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads, to_yaml
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import (
    expand,
    merge,
    replace,
    replicate_seed,
    short_names,
)
from stalesim.simulator.world.laws.distributions import Constant

TREE: dict[str, Any] = {
    "name": "study",
    "seed": 7,
    "replicates": 2,
    "problem": {
        "data": {"kind": "digits"},
        "partition": {"kind": "vertical", "parties": 4},
    },
    "clients": {"compute": {"law": "gamma", "a": 2, "scale": "m"}},
    "protocol": {"kind": "t_synchronous", "t": 2},
    "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 8, "upload": "all"},
    "stop": {"time": 10},
    "evaluate": {"every": {"time": 1}},
}


def study(**changes: Any) -> Scenario:
    return Scenario.model_validate(merge(TREE, changes))


def test_runs_are_variants_times_points_times_replicates_in_this_order() -> None:
    scenario = study(
        variants={"one": {}, "all": {"protocol": {"kind": "synchronous"}}},
        sweep={"algorithm.step_size": [0.1, 0.2], "clients.compute.a": [1, 2, 3]},
    )
    runs = expand(scenario)
    assert len(runs) == 2 * 2 * 3 * 2
    assert [run.number for run in runs] == list(range(24))
    assert [run.replicate for run in runs[:4]] == [0, 1, 0, 1]
    assert runs[0].variant == "one"
    assert runs[-1].variant == "all"
    assert runs[-1].parameters == {"algorithm.step_size": 0.2, "clients.compute.a": 3}
    assert runs[-1].label == "all, learning_rate=0.2, a=3"
    assert runs[-1].scenario.algorithm.step_size == 0.2
    assert runs[-1].scenario.protocol.kind == "synchronous"


def test_a_resolved_scenario_is_one_run() -> None:
    for run in expand(study(variants={"one": {}}, sweep={"protocol.t": [1, 2]})):
        assert run.scenario.variants == {}
        assert run.scenario.sweep == {}
        assert run.scenario.replicates == 1
        again = expand(run.scenario)
        assert [r.scenario for r in again] == [run.scenario]
        assert again[0].label == "base"


def test_replicates_have_the_same_seeds_in_all_variants_and_points() -> None:
    runs = expand(study(variants={"a": {}, "b": {}}, sweep={"protocol.t": [1, 2]}))
    seeds = {run.replicate: {r.seed for r in runs[run.replicate :: 2]} for run in runs}
    assert seeds == {0: {replicate_seed(7, 0)}, 1: {replicate_seed(7, 1)}}
    assert replicate_seed(7, 0) != replicate_seed(7, 1) != replicate_seed(8, 1)


def test_seeds_do_not_change_between_versions() -> None:
    # A published study is repeated by its seed: these numbers are part of the format.
    assert [replicate_seed(1, r) for r in range(3)] == SEEDS_OF_1


SEEDS_OF_1 = [1641411168, 1454127163, 2749604155]


def test_a_variant_merges_replaces_another_kind_and_removes() -> None:
    scenario = study(
        variants={
            "merged": {"clients": {"compute": {"a": 3}}},
            "replaced": {"clients": {"compute": {"law": "constant", "value": 1}}},
            "removed": {"stop": {"time": None, "commits": 5}},
        }
    )
    merged, replaced, removed = (run.scenario for run in expand(scenario)[::2])
    assert merged.clients is not None
    assert merged.clients.compute.model_dump() == {
        "law": "gamma",
        "a": 3,
        "loc": 0,
        "scale": "m",
        "shift": 0,
    }
    assert replaced.clients is not None
    assert replaced.clients.compute == Constant(value=1)
    assert (removed.stop.time, removed.stop.commits) == (None, 5)


def test_merging_leaves_its_arguments_alone() -> None:
    base, changes = {"a": {"kind": "x", "b": 1}}, {"a": {"kind": "y", "c": None}}
    assert merge(base, changes) == {"a": {"kind": "y", "c": None}}
    assert base == {"a": {"kind": "x", "b": 1}}
    assert changes == {"a": {"kind": "y", "c": None}}


def test_a_kind_that_is_replaced_alone_leaves_what_stands_beside_it() -> None:
    tree = {"a": {"kind": "x", "b": 1}}
    assert replace(tree, ("a", "kind"), "y") == {"a": {"kind": "y", "b": 1}}
    assert replace(tree, ("a",), {"kind": "y"}) == {"a": {"kind": "y"}}
    assert replace(tree, ("c", "d"), 1) == {**tree, "c": {"d": 1}}


def test_labels_stay_apart_when_keys_end_alike() -> None:
    assert short_names(("a.b.scale", "a.c.scale", "x.t")) == {
        "a.b.scale": "b.scale",
        "a.c.scale": "c.scale",
        "x.t": "t",
    }
    assert short_names(
        ("algorithm.step_size", "algorithm.optimizer.learning_rate")
    ) == {
        "algorithm.step_size": "algorithm.learning_rate",
        "algorithm.optimizer.learning_rate": "optimizer.learning_rate",
    }
    assert short_names(("scale", "a.scale")) == {
        "scale": "scale",
        "a.scale": "a.scale",
    }
    protocols = [{"kind": "synchronous"}, {"kind": "t_synchronous", "t": 2}]
    labels = [run.label for run in expand(study(sweep={"protocol": protocols}))[::2]]
    assert labels == ["base, protocol=synchronous", "base, protocol=t_synchronous"]


def test_a_bad_variant_is_told_from_python_too() -> None:
    with pytest.raises(ScenarioError, match=r"^variants\.a: protocol\.t .*got 9"):
        expand(study(variants={"a": {"protocol": {"t": 9}}}))
    with pytest.raises(ScenarioError, match=r"^sweep of protocol\.t = 9 \(variant a\)"):
        expand(study(variants={"a": {}}, sweep={"protocol.t": [1, 9]}))


def test_a_scenario_comes_back_from_yaml() -> None:
    scenario = study(
        source="1e3",
        question="no: 'yes' # 010 -\nsecond line \u2028 \x85 é",
        clients={"idle": {"law": "constant", "value": [1, 2.5, 0, 1e-12]}},
        variants={"010": {"stop": {"time": None, "commits": 3}}, "no": {}},
        sweep={"protocol.t": [1, 2]},
        claims=[{"close": "no", "than": "010", "within": 0.1, "says": "12:30:00"}],
    )
    assert loads(to_yaml(scenario), "written") == scenario


def test_a_variant_may_have_its_own_sweep() -> None:
    made = study(
        variants={
            "a": {},
            "b": {"sweep": {}},
            "c": {"sweep": {"algorithm.step_size": [0.3]}},
        },
        sweep={"protocol.t": [1, 2]},
    )
    labels = list(dict.fromkeys(run.label for run in expand(made)))
    assert labels == ["a, t=1", "a, t=2", "b", "c, learning_rate=0.3"]


@pytest.mark.parametrize("sweep", [3, [1], {"protocol.t": 1}, {"protocol.t": []}])
def test_a_variants_sweep_must_be_one(sweep: object) -> None:
    made = study(variants={"b": {"sweep": sweep}}, sweep={"protocol.t": [1, 2]})
    with pytest.raises(ScenarioError, match=r"^variants\.b\.sweep.* must .*list") as no:
        expand(made)
    assert getattr(no.value, "keys", ())[:3] == ("variants", "b", "sweep")


def test_a_value_of_a_variants_sweep_is_blamed_where_it_stands() -> None:
    made = study(variants={"b": {"sweep": {"protocol.t": [1, 9]}}})
    with pytest.raises(ScenarioError, match=r"^sweep of protocol\.t = 9") as caught:
        expand(made)
    keys = ("variants", "b", "sweep", "protocol.t", 1)
    assert getattr(caught.value, "keys", None) == keys


def test_a_variant_of_another_kind_says_that_it_starts_from_nothing() -> None:
    made = study(variants={"b": {"algorithm": {"kind": "fed_sgd"}}})
    with pytest.raises(
        ScenarioError,
        match=r"^variants\.b: algorithm\.learning_rate is missing; .*; that of the "
        r"base belongs to its kind 'vafl': a variant with another kind inherits",
    ):
        expand(made)
    changed = {"clients": {"compute": {"law": "gamma"}}}
    made = study(clients={"compute": {"law": "expon"}}, variants={"b": changed})
    with pytest.raises(ScenarioError, match=r"compute\.a is missing") as caught:
        expand(made)
    assert "inherits nothing" not in str(caught.value), "the base has no a either"
