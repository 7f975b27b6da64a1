"""Accuracy of each client and each label, and how far clients are apart."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import prepare, prepare_together
from stalesim.simulator.parts import catalogue, metrics
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.metrics import fairness
from stalesim.simulator.problem.metrics.functions import accuracy, accuracy_by_label
from stalesim.simulator.scenario.study import merge
from tests.runs import execute, prepared
from tests.support import SGD, Memory

NAMES = (
    *("test_accuracy", "client_accuracy", "client_accuracy_std", "label_accuracy"),
    *("client_accuracy_worst_decile", "client_accuracy_min"),
)
BASE = merge(
    SGD,
    {
        "problem": {"partition": {"kind": "dirichlet", "clients": 12, "alpha": 0.2}},
        "algorithm": {
            "kind": "fed_avg",
            "local_epochs": 1,
            "step_size": 0.2,
            "batch": 32,
        },
        "protocol": {"kind": "synchronous"},
        "clients": {"compute": {"law": "constant", "value": 1.0}},
        "stop": {"commits": 4},
        "evaluate": {"every": {"commits": 2}, "metrics": list(NAMES)},
    },
)


def shares(y_test: Any) -> Any:
    data = SimpleNamespace(
        y_train=np.array([0, 0, 1, 1, 1, 2]), y_test=np.array(y_test), num_classes=3
    )
    pools = [np.array([0, 1]), np.array([2, 3, 0, 1]), np.array([4, 5])]
    return SimpleNamespace(data=data, pools=pools)


def test_the_accuracy_of_a_label_by_hand() -> None:
    outputs = jnp.array([[9.0, 1, 0], [0, 1, 2], [0, 3, 1], [5, 1, 0]])
    targets = jnp.array([0, 1, 1, 1])
    found = accuracy_by_label(outputs, targets)
    np.testing.assert_allclose(found, [1, 1 / 3, np.nan], rtol=1e-6)
    scores = jnp.array([1.0, -1, 2, -3])
    np.testing.assert_allclose(
        accuracy_by_label(scores, jnp.array([1, 1, 0, 0])), [0.5, 0.5]
    )


def test_clients_have_the_accuracy_of_their_labels() -> None:
    mix = fairness.label_mix(shares([0, 1, 2]))
    np.testing.assert_allclose(mix, [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    by_label = np.array([0.8, 0.4, 0.2])
    each = fairness.each_client(mix, by_label)
    np.testing.assert_allclose(each, [0.8, 0.6, 0.3])
    assert fairness.spread(mix, by_label) == pytest.approx(np.std([0.8, 0.6, 0.3]))
    assert fairness.least(mix, by_label) == pytest.approx(0.3)
    assert fairness.worst_decile(mix, by_label) == pytest.approx(0.3)
    eleven = np.tile(mix, (4, 1))[:11]  # two of eleven are their worst tenth
    assert fairness.worst_decile(eleven, by_label) == pytest.approx(0.3)


def test_labels_without_test_rows_do_not_count() -> None:
    mix = fairness.label_mix(shares([0, 1]))
    np.testing.assert_allclose(mix[2], [0, 1, 0])
    each = fairness.each_client(mix, np.array([0.8, 0.4, np.nan]))
    np.testing.assert_allclose(each, [0.8, 0.6, 0.4])
    assert metrics.metric("label_accuracy").mean(np.array([0.8, 0.4, np.nan])) == (
        pytest.approx(0.6)
    )
    with pytest.raises(ScenarioError, match="client 1 has no label"):
        fairness.label_mix(shares([1, 2]))


def columns(memory: Memory, run: int) -> dict[str, np.ndarray]:
    found = {name: memory.column("evaluations", name, run) for name in NAMES}
    table = memory.column("workers", "client_accuracy", run).reshape(3, -1)
    return found | {"table": table, "labels": memory.column("labels", NAMES[3], run)}


def test_a_run_writes_them_for_every_client_and_label() -> None:
    run = prepared(BASE, seed=4)
    memory, _ = execute([run])
    found = columns(memory, 0)
    each = found["table"]
    assert each.shape == (3, 12)
    np.testing.assert_allclose(found["client_accuracy"], each.mean(axis=1))
    np.testing.assert_allclose(found["client_accuracy_std"], each.std(axis=1))
    np.testing.assert_allclose(found["client_accuracy_min"], each.min(axis=1))
    worst = np.sort(each, axis=1)[:, :2].mean(axis=1)
    np.testing.assert_allclose(found["client_accuracy_worst_decile"], worst)
    assert each[-1].std() > 0.01
    # Labels by their test rows are the test accuracy, clients by theirs as well.
    y = run.shares.data.y_test
    by_label = found["labels"].reshape(3, 10)
    np.testing.assert_allclose(found["label_accuracy"], by_label.mean(axis=1))
    np.testing.assert_allclose(
        found["test_accuracy"], by_label @ np.bincount(y) / y.size, rtol=1e-6
    )


def test_runs_side_by_side_have_their_own_clients() -> None:
    runs = [prepared(BASE, seed=seed, number=seed) for seed in (4, 5)]
    alone = [columns(execute([run])[0], run.run.number) for run in runs]
    together, _ = execute(prepare_together([run.run for run in runs]), "batched")
    for seed, one in zip((4, 5), alone, strict=True):
        other = columns(together, seed)
        for name in (*NAMES, "table"):
            np.testing.assert_allclose(other[name], one[name], atol=0.004)
    assert (alone[0]["table"] != alone[1]["table"]).any()


def hits(outputs: Any, targets: Any) -> Any:
    return accuracy_by_label(outputs, targets)


def seen(mix: np.ndarray, by_label: np.ndarray) -> np.ndarray:
    return (mix > 0) @ np.nan_to_num(by_label)


ABOVE_TWO = metrics.Need(
    lambda facts: facts.num_classes > 2,
    "must not have {name} for the {num_classes} classes of {dataset}; remove it",
)
SEEN = metrics.Metric(
    "labels_seen",
    f"{__name__}:hits",
    of_run=f"{__name__}:seen",
    each=metrics.Each.CLIENT,
    takes=metrics.Takes.OUTPUTS,
    needs=(ABOVE_TWO,),
)


def test_a_metric_of_clients_is_one_file_and_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its functions, its record and a need of its own; nothing else knows it."""
    own = catalogue.own
    known = {"metrics": (*own("metrics"), SEEN)}
    monkeypatch.setattr(catalogue, "own", lambda kind: known.get(kind) or own(kind))
    run = prepared(BASE, seed=4).run
    asked = {"metrics": ("labels_seen", "test_accuracy")}
    scenario = run.scenario.model_copy(
        update={"evaluate": run.scenario.evaluate.model_copy(update=asked)}
    )
    memory, _ = execute([prepare(run._replace(scenario=scenario))])
    each = memory.column("workers", "labels_seen", 0).reshape(3, 12)
    found = memory.column("evaluations", "labels_seen", 0)
    np.testing.assert_allclose(found, each.mean(axis=1))
    assert each.max() > 1
    facts = metrics.ProblemFacts("two", 2, minimum=False, likelihood=True, divided=True)
    with pytest.raises(ScenarioError, match="labels_seen for the 2 classes of two"):
        metrics.metric("labels_seen").refuse(facts)


def test_a_run_may_stop_at_them() -> None:
    target = {"stop": {"target": {"client_accuracy_worst_decile": 0.3}, "commits": 50}}
    memory, (end,) = execute([prepared(BASE, target, seed=4)])
    assert end["stop"] == "target"
    last = memory.column("evaluations", "client_accuracy_worst_decile")
    assert last[-1] >= 0.3 > last[:-1].max()


def test_data_without_rows_of_clients_are_refused() -> None:
    vertical = {"evaluate": {"metrics": ["client_accuracy"]}}
    with pytest.raises(ScenarioError, match="divided by rows"):
        prepared(vertical)


def test_the_mean_is_that_of_all_rows() -> None:
    outputs = jax.random.normal(jax.random.key(1), (50, 4))
    targets = jnp.arange(50) % 4
    found = accuracy_by_label(outputs, targets)
    counts = np.bincount(np.asarray(targets))
    np.testing.assert_allclose(
        (found * counts).sum() / 50, accuracy(outputs, targets), rtol=1e-6
    )
