"""Operations of a model's gradient, against counts by hand.

The product of an m x n matrix with a vector takes 2 m n operations. Its gradient takes
as many for the matrix, and as many again for the vector unless that is data. Whatever
else there is looks at each number of a layer a few times: at most PASSES.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.learning.learning import learning
from stalesim.simulator.learning.work import Operations, operations
from stalesim.simulator.models.convolution import convolve
from stalesim.simulator.scenario.scenario import Problem
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.studies.planning import of_runs
from stalesim.simulator.studies.sizes import sizes
from stalesim.simulator.timelines.of_run import set_up
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from tests.support import SGD, everything, scenario

PASSES = 16
FEATURES, CLASSES = 64, 10


def counted(model: dict[str, Any], **changes: Any) -> Operations:
    entries = {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": 3},
        "model": model,
    }
    return learning(Problem.model_validate(entries | changes)).numerics.work


def products(*layers: int) -> int:
    """Returns the operations of the gradient of a network of dense layers."""
    forward = [2 * a * b for a, b in pairwise(layers)]
    return 3 * sum(forward) - forward[0]


def is_close(found: int, least: int, units: int) -> bool:
    return least <= found <= least + PASSES * units


def plain(num_outputs: int, num_features: int) -> Any:
    """The network of 16 and 8 hidden units, as a user writes it."""
    widths = (num_features, 16, 8, num_outputs)

    def init(key: Any) -> Any:
        del key
        return [(jnp.zeros((a, b)), jnp.zeros(b)) for a, b in pairwise(widths)]

    def apply(weights: Any, x: Any) -> Any:
        for matrix, bias in weights[:-1]:
            x = jax.nn.relu(x @ matrix + bias[None])
        return x @ weights[-1][0] + weights[-1][1][None]

    return init, apply


def dropping(num_outputs: int, num_features: int) -> Any:
    """The same with dropout of half of the first layer's units."""
    init, _ = plain(num_outputs, num_features)

    def apply(weights: Any, x: Any, key: Any) -> Any:
        for number, (matrix, bias) in enumerate(weights):
            x = x @ matrix + bias[None]
            if number == 0 and key is not None:
                x = x * jax.random.bernoulli(key, 0.5, x.shape)
            if number < 2:
                x = jax.nn.relu(x)
        return x

    return init, apply


def test_a_linear_model_takes_two_products() -> None:
    found = counted({"kind": "linear"})
    # The bias is the weight of a feature that is one.
    assert is_close(found.clients[0], products(FEATURES + 1, CLASSES), CLASSES)
    assert found.server == 0


@pytest.mark.long
def test_a_network_takes_three_products_a_layer_but_the_first() -> None:
    least, units = products(FEATURES, 16, 8, CLASSES), 16 + 8 + CLASSES
    assert least == 2 * (2 * 64 * 16 + 3 * 16 * 8 + 3 * 8 * 10)
    ours = counted({"kind": "dense", "hidden": [16, 8]}).clients[0]
    own = counted({"kind": "python", "build": f"{__name__}:plain"}).clients[0]
    drawn = counted({"kind": "python", "build": f"{__name__}:dropping"}).clients[0]
    for found in (ours, own, drawn):
        assert is_close(found, least, units)
    assert drawn > own


def test_a_convolutional_network_is_counted_by_hand() -> None:
    data = {"kind": "synthetic_images", "side": 32, "channels": 3, "limit": 50}
    found = counted({"kind": "cnn", "channels": [10, 10]}, data=data).clients[0]
    first = 2 * 10 * 3 * 25 * 28 * 28  # 10 kernels 5 x 5 over 3 colours
    second = 2 * 10 * 10 * 25 * 10 * 10  # over 10 channels of 14 x 14
    last = 2 * 10 * 10 * 5 * 5
    units = 10 * 28 * 28 + 10 * 10 * 10 + 10
    assert is_close(found, 2 * first + 3 * (second + last), units)


def test_the_count_does_not_depend_on_how_this_machine_convolves() -> None:
    images, kernels = jnp.zeros((3, 9, 9, 2)), jnp.zeros((4, 3, 3, 3))
    forms = [
        operations(lambda x, k, form=form: convolve(x, k, form), images, kernels)
        for form in ("patches", "native")
    ]
    assert forms == [2 * 4 * 27 * 49 * 2] * 2


def test_a_loop_counts_as_often_as_it_runs() -> None:
    matrix, rows = jnp.zeros((6, 6)), jnp.zeros((10, 4, 6))

    def once(carry: Any, row: Any) -> Any:
        return jnp.tanh(carry @ matrix + row), None

    def looped(rows: Any) -> Any:
        return jax.lax.scan(once, rows[0], rows)[0].sum()

    def unrolled(rows: Any) -> Any:
        carry = rows[0]
        for row in rows:
            carry, _ = once(carry, row)
        return carry.sum()

    within = jax.jit(lambda rows: jax.lax.map(looped, jnp.stack([rows] * 3)).sum())
    one = 10 * (2 * 4 * 6 * 6 + 4 * 6)
    assert operations(unrolled, rows) == pytest.approx(one + 23, abs=1)
    # A loop has a counter, which is compared and raised once in the count.
    assert operations(looped, rows) == pytest.approx(one + 23, abs=3)
    assert operations(within, rows) == pytest.approx(3 * (one + 23) + 2, abs=9)


def test_parties_and_server_are_counted_each_by_its_own_columns() -> None:
    vertical = {"kind": "vertical", "parties": 5}
    data = {"kind": "breast_cancer", "scale": "standard"}
    found = counted(
        {"kind": "dense", "hidden": [8]},
        data=data,
        partition=vertical,
        server={"width": 4, "hidden": [6]},
        loss="softmax",
    )
    assert len(found.clients) == 5
    for own in found.clients:
        assert is_close(own, products(30 // 5, 8, 4), 8 + 4)
    # The parties get the gradient of what they sent: three products of each layer.
    least = 3 * 2 * (5 * 4 * 6 + 6 * 2)
    assert is_close(found.server, least, 5 * 4 + 6 + 2)


def run_of(**clients: Any) -> Run:
    study = scenario(
        SGD, {"clients": {"compute": {"law": "constant", "value": 1}} | clients}
    )
    return Run(0, "base", {}, 0, 1, study)


def test_work_is_counted_only_where_a_world_asks_for_it(monkeypatch) -> None:
    def fails(numerics: Any) -> Any:
        raise AssertionError(numerics)

    monkeypatch.setattr("stalesim.simulator.learning.work.work", fails)
    set_up(run_of())
    with pytest.raises(AssertionError):
        set_up(run_of(compute_per="flop"))


@pytest.mark.parametrize("player", ["fastest", "simpy"])
def test_a_job_takes_its_operations_at_the_clients_rate(player) -> None:
    run = run_of(
        compute_per="flop",
        groups={
            "fast": {"number": 2, "compute": {"law": "constant", "value": "1/4e6"}},
            "slow": {"number": 3, "compute": {"law": "constant", "value": "1/1e6"}},
        },
    )
    timeline = set_up(run).timeline
    assert isinstance(timeline, SimulatedTimeline)
    _, jobs, _ = everything(replace(timeline, player=player))
    flops = 11 * counted({"kind": "linear"}).clients[0]
    taken = (jobs.computed_time - jobs.begun_time)[:5]
    rates = np.where(jobs.client[:5] < 2, 4e6, 1e6)
    np.testing.assert_allclose(taken, flops / rates)


def test_a_wider_party_takes_longer() -> None:
    compute = {"law": "constant", "value": "1/1e6"}
    study = scenario({"clients": {"compute": compute, "compute_per": "flop"}})
    setup = set_up(Run(0, "base", {}, 0, 1, study))
    assert isinstance(setup.timeline, SimulatedTimeline)
    _, jobs, _ = everything(setup.timeline)
    widths = np.array(setup.shares.num_features)
    assert len(set(widths)) > 1
    ended = ~np.isnan(jobs.computed_time)
    taken, who = (jobs.computed_time - jobs.begun_time)[ended], jobs.client[ended]
    # 17 rows; logits of two classes are one number: a product and its gradient.
    np.testing.assert_allclose(taken, 17 * 4 * widths[who] / 1e6)


def test_a_plan_says_what_was_counted() -> None:
    [size] = sizes(of_runs([run_of()]))
    assert size.flops == counted({"kind": "linear"}).clients
    assert (size.num_weights, size.upload_bytes, size.samples) == (650, 2600, 11)


def test_a_model_that_fails_is_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"problem\.model\.build must"):
        counted({"kind": "python", "build": f"{__name__}:nothing"})
