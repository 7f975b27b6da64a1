"""Minibatches of clients with unequal shares: short batches, and epochs."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files.timeline import NO_SAMPLE
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.sampler import Sampler, Sampling, UnevenSampler, alike

POOLS = [np.arange(0, 25), np.arange(100, 103), np.arange(200, 210)]
"""Of 25, 3 and 10 samples."""


def batches(sampler: Sampler, client: int, job: int) -> list[np.ndarray]:
    """Returns the batches of a job that have samples, without their empty places."""
    places = sampler.batch(client, job).reshape(sampler.steps, sampler.size)
    return [batch[batch != NO_SAMPLE] for batch in places if batch[0] != NO_SAMPLE]


def test_an_epoch_is_every_sample_once_and_its_last_batch_is_short() -> None:
    sampler = UnevenSampler(3, POOLS, 10, epochs=2)
    for client, sizes in enumerate(([10, 10, 5], [3], [10])):
        for job in (0, 1, 7):
            drawn = batches(sampler, client, job)
            assert [batch.size for batch in drawn] == sizes * 2
            first, second = np.split(np.concatenate(drawn), 2)
            for epoch in (first, second):
                np.testing.assert_array_equal(np.sort(epoch), POOLS[client])
            if client != 1:
                assert (first != second).any(), "each epoch has an order of its own"
    np.testing.assert_array_equal(sampler.own_steps, [6, 2, 2])
    np.testing.assert_array_equal(sampler.own_samples, [50, 6, 20])


def test_a_batch_beyond_all_shares_is_everything() -> None:
    sampler = UnevenSampler(3, POOLS, 10_000, epochs=1)
    assert (sampler.size, sampler.steps) == (25, 1)
    for client, pool in enumerate(POOLS):
        np.testing.assert_array_equal(np.sort(batches(sampler, client, 4)[0]), pool)


@pytest.mark.parametrize("sampling", ["distinct", "shuffled"])
def test_steps_are_as_short_as_shares_are(sampling: Sampling) -> None:
    sampler = UnevenSampler(3, POOLS, 7, sampling=sampling, steps=3)
    for client, size in enumerate((7, 3, 7)):
        drawn = batches(sampler, client, 5)
        assert [batch.size for batch in drawn] == [size] * 3
        for batch in drawn if sampling == "distinct" else ():
            assert np.unique(batch).size == size
        assert np.isin(np.concatenate(drawn), POOLS[client]).all()
    # Who has enough draws what it would draw among equals.
    equals = Sampler(3, [POOLS[0], POOLS[2]], 7, sampling=sampling, steps=3)
    np.testing.assert_array_equal(sampler.batch(0, 5), equals.batch(0, 5))
    with pytest.raises(ScenarioError, match="at most the 3 samples"):
        Sampler(3, POOLS, 7, sampling=sampling, steps=3)


def test_runs_side_by_side_have_places_alike_and_the_same_samples() -> None:
    others = [np.arange(40), np.arange(50, 52)]
    samplers: list[Sampler] = [
        UnevenSampler(1, POOLS, 10, epochs=1),
        UnevenSampler(1, others, 10, epochs=1),
        Sampler(1, others, 2, steps=2),
    ]
    wide = alike(samplers)
    assert len({(each.steps, each.size) for each in wide}) == 1
    for narrow, wider in zip(samplers, wide, strict=True):
        for one, other in zip(batches(narrow, 1, 2), batches(wider, 1, 2), strict=True):
            np.testing.assert_array_equal(one, other)
    even = [Sampler(1, others, 2), Sampler(2, others, 2)]
    assert alike(even) == even, "runs of equal shares stay as they are"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"local_epochs": 1, "local_steps": 2}, "must not be set with local_steps"),
        ({"local_epochs": 1, "sampling": "replacement"}, "sampling must be left out"),
        ({}, "must have local_epochs or local_steps"),
        ({"local_epochs": 1, "speeds": 2}, "speeds must be left out with local_epochs"),
        (
            {"local_epochs": 1, "mechanism": {"clip_bound": 1, "multiplier": 1}},
            "mechanism.clip must be contribution",
        ),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], message: str) -> None:
    from stalesim.simulator.catalogue.algorithms.federated.part import FedAvg

    with pytest.raises(ValueError, match=message):
        FedAvg.model_validate({"step_size": 0.1, "batch": 10, **options})


def test_a_written_algorithm_is_read_again() -> None:
    from stalesim.simulator.catalogue.algorithms.federated.part import (
        FedAvg,
        FedBuff,
        Sgd,
    )

    plain = {"step_size": 0.1, "batch": 10}
    for part, options in (
        (FedAvg, {"local_epochs": 2, "weighting": "equal"}),
        (FedAvg, {"local_steps": 2}),
        (FedBuff, {"local_epochs": 2, "weighting": "samples"}),
        (Sgd, {"local_steps": 3}),
        (Sgd, {"local_steps": 3, "speeds": "1/m"}),
        (Sgd, {"local_epochs": 1}),
    ):
        given = part.model_validate({**plain, **options})
        written = given.model_dump(mode="json")
        assert part.model_validate(written) == given
        assert options.items() <= written.items()
