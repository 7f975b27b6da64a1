"""Models of a user's own: those of this package written again give the same numbers.

Both take their sums in other orders, so that they agree to rounding: 40 rows of numbers
of order 1, each wrong by a few 1e-16. `NEAR` is a million times that.
"""

from typing import Any

import jax
import numpy as np
import pytest

from tests.runs import execute, prepared

NEAR = 1e-9
LINEAR = {"kind": "python", "build": "tests.own_models:linear"}
BASE: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits", "limit": 300, "scale": "unit"},
        "partition": {"kind": "iid", "clients": 5},
        "l2": 0.001,
    },
    "clients": {"compute": {"law": "expon", "scale": 1.0}},
    "algorithm": {"kind": "sgd", "step_size": 0.3, "batch": 11},
    "stop": {"commits": 40},
    "evaluate": {
        "every": {"commits": 10},
        "metrics": [
            *("test_accuracy", "test_loss", "objective", "gradient_norm_squared"),
        ],
    },
    "engine": {"precision": "float64", "chunk": 64},
}
GOSSIP = {
    "protocol": {"kind": "gossip"},
    "algorithm": {"kind": "psgd", "step_size": 0.3, "batch": 11},
    "evaluate": {"metrics": ["test_accuracy", "worker_loss", "consensus_distance"]},
}
BUFFERED = {
    "protocol": {"kind": "buffered", "size": 3},
    "algorithm": {
        "kind": "fed_buff",
        "step_size": 0.1,
        "server_step_size": 0.7,
        "local_steps": 3,
        "batch": 11,
    },
}
# Noise is drawn in the order of the weights, which is another one: next to none.
CLIPPED = {
    "algorithm": {
        "mechanism": {
            "law": "gaussian",
            "clip": "sample",
            "clip_bound": 1,
            "multiplier": 1e-14,
        }
    }
}
Tables = dict[str, np.ndarray]


def run(*changes: dict[str, Any], mode: str = "compiled") -> Tables:
    """Returns all metrics of all evaluations."""
    with jax.enable_x64(True):
        plan = prepared(*changes)
        memory, _ = execute([plan], mode)
    metrics = plan.scenario.evaluate.metrics
    return {name: memory.column("evaluations", name) for name in metrics}


def assert_same(one: Tables, other: Tables) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert len(values) > 2
        assert np.isfinite(values).all()
        np.testing.assert_allclose(other[name], values, NEAR, NEAR, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", [{}, GOSSIP], ids=["asynchronous", "gossip"])
def test_the_linear_model_written_again(case: dict[str, Any]) -> None:
    """With its bias apart, which has no regulariser; see `test_own_everywhere`."""
    plain = run(BASE, case)
    assert_same(plain, run(BASE, case, {"problem": {"model": LINEAR}}))


@pytest.mark.slow
def test_a_loss_written_again_and_samples_clipped_one_by_one() -> None:
    own = {"problem": {"model": LINEAR, "loss": "tests.own_models:cross_entropy"}}
    plain = run(BASE, CLIPPED)
    assert_same(plain, run(BASE, CLIPPED, own))
    # A loss of one's own takes the outputs of a model of this package, too.
    assert_same(
        plain, run(BASE, CLIPPED, {"problem": {"loss": own["problem"]["loss"]}})
    )


VERTICAL: dict[str, Any] = {
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "vertical", "parties": 4},
    },
    "evaluate": {"metrics": ["test_accuracy", "test_loss", "test_auc", "objective"]},
}
WITH_SERVER: dict[str, dict[str, Any]] = {
    "VAFL, batches": {
        "algorithm": {"kind": "vafl", "step_size": 0.2, "batch": 17, "upload": "batch"}
    },
    "VAFL, all samples": {
        "algorithm": {"kind": "vafl", "step_size": 0.2, "batch": 17, "upload": "all"}
    },
    "FedBCD": {
        "protocol": {"kind": "rounds"},
        "algorithm": {
            "kind": "fed_bcd",
            "step_size": 0.1,
            "batch": 17,
            "local_steps": 3,
        },
    },
    "FedSGD": {
        "protocol": {"kind": "rounds"},
        "algorithm": {"kind": "fed_sgd", "step_size": 0.1, "batch": 17},
    },
}


@pytest.mark.slow
def test_one_model_for_all_parties_which_have_different_widths() -> None:
    base = {k: v for k, v in BASE.items() if k != "problem"}
    changes = [base, VERTICAL, WITH_SERVER["VAFL, batches"]]
    own = {
        "problem": {
            "model": {"kind": "python", "build": "tests.own_models:party"},
            "loss": "tests.own_models:cross_entropy",
        }
    }
    plain = {"problem": {"loss": "softmax"}}
    assert_same(run(*changes, plain), run(*changes, own))


PARTIES = {
    "problem": {
        "model": {"kind": "dense", "hidden": [5]},
        "server": {"width": 3, "combine": "concat", "hidden": [6]},
        "loss": "softmax",
    }
}
OWN_SERVER = {
    "problem": {
        "server": {
            "build": "tests.own_models:server",
            "combine": None,
            "hidden": None,
        }
    }
}
OWN_LOSS = {"problem": {"loss": "tests.own_models:cross_entropy"}}


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_SERVER)
def test_the_server_s_network_written_again(name: str) -> None:
    base = {k: v for k, v in BASE.items() if k != "problem"}
    changes = [base, VERTICAL, PARTIES, WITH_SERVER[name]]
    own = [*changes, OWN_SERVER, OWN_LOSS]
    plain, other = run(*changes), run(*own)
    assert_same(plain, other)
    for mode in ("stepwise", "batched"):
        assert_same(other, run(*own, mode=mode))


@pytest.mark.long
def test_the_convolutional_network_written_again() -> None:
    base = {
        **BASE,
        "problem": {
            "data": {"kind": "mnist", "source": "bundled", "limit": 200},
            "partition": {"kind": "iid", "clients": 5},
        },
        "stop": {"commits": 12},
        "evaluate": {
            "every": {"commits": 4},
            "metrics": ["test_accuracy", "test_loss"],
        },
    }
    own = {"kind": "python", "build": "tests.own_models:cnn"}
    plain = run(base, {"problem": {"model": {"kind": "cnn"}}})
    assert_same(plain, run(base, {"problem": {"model": own}}))


def test_messages_and_weights_are_counted_from_the_model() -> None:
    own = {"kind": "python", "build": "tests.own_models:linear"}
    plain, other = (
        prepared(BASE, {"problem": {"model": model}})
        for model in ({"kind": "linear"}, own)
    )
    assert other.shape == plain.shape
    assert other.shape.num_weights == 650
    workloads = [p.timeline.workload for p in (plain, other)]
    assert workloads[0] == workloads[1]
