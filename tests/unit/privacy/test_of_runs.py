"""What a message releases, and when that is a proof."""

import math
from typing import Any

import pytest

from stalesim.simulator.catalogue.algorithms.edge_cloud.part import Audp, Mapa
from stalesim.simulator.catalogue.algorithms.federated.part import Mechanism, Sgd
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.privacy.releases import Gaussian, Pure

FORMAL = {"noise": "spherical_laplace", "clip": "sample", "sampling": "distinct"}
MECHANISM = {"clip_bound": 1.0, "multiplier": 2.0}


def one(config: Any, n: int = 100, batch: int = 10, num_weights: int = 784) -> Any:
    return config.guarantees([n], batch, num_weights)[0]


def audp(**options: Any) -> Audp:
    return Audp(**{"epsilon": 0.1, **FORMAL, **options})


def sgd(sampling: Any = "distinct", **mechanism: Any) -> Sgd:
    return Sgd(
        step_size=0.1,
        batch=10,
        sampling=sampling,
        mechanism=Mechanism(**{**MECHANISM, **mechanism}),
    )


def test_only_spherical_noise_on_clipped_samples_has_the_stated_epsilon() -> None:
    found = one(audp())
    assert (found.release, found.formal) == (Pure(0.1), True)
    assert found.mechanism == "spherical Laplace, clip: sample"
    assert one(Mapa(epsilon=0.1, **FORMAL)).formal


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"clip": "mean"}, "b = 10 times the stated sensitivity"),
        ({"noise": "radial_exponential"}, "private at no epsilon"),
        ({"noised": "first_convolution"}, "only the first layer's gradient"),
        ({"clip_bound": "data"}, "clip_bound measured on the data"),
        ({"sigma": "data", "smoothness": "data"}, "sigma, smoothness measured"),
        ({"samples": "common"}, "the same samples"),
    ],
)
def test_else_it_is_the_papers_own_accounting(changes: dict, why: str) -> None:
    found = one(audp(**changes))
    assert (found.release, found.formal) == (Pure(0.1), False)
    assert found.why.startswith("the paper's epsilon of an iteration: ")
    assert why in found.why
    assert "\n" not in found.why


def test_a_radius_is_a_distance_in_one_dimension() -> None:
    assert one(audp(noise="radial_exponential"), num_weights=1).formal


def test_independent_laplace_noise_costs_the_root_of_the_dimension() -> None:
    found = one(audp(noise="laplace"))
    assert found.release.epsilon == pytest.approx(2.8)
    assert found.formal
    assert "sqrt(d) = 28 times" in found.why


def test_a_sample_that_is_drawn_again_costs_more() -> None:
    # Balle, Barthe and Gaboardi, Theorem 10, by hand; b = 10, n = 100.
    there = 1 - 0.99**10
    large = one(audp(epsilon=1.0, sampling="replacement"))
    assert large.release.epsilon == pytest.approx(
        math.log(1 + there * math.expm1(10.0)), rel=1e-12
    )
    assert "may be 10 times" in large.why
    # Where the draw would amplify, nothing is claimed.
    assert one(audp(sampling="replacement"), n=10_000).release == Pure(0.1)
    assert one(audp(sampling="replacement"), batch=1).release == Pure(0.1)
    alone = one(audp(sampling="replacement"), n=1).release
    assert alone.epsilon == pytest.approx(1.0)
    assert one(audp(sampling="shuffled"), n=100).release == Pure(0.1)
    assert one(audp(sampling="shuffled"), n=101).release == Pure(0.2)
    assert one(audp(epsilon=100.0, sampling="replacement")).release.epsilon < 1000


def test_every_client_has_its_own_epsilon() -> None:
    config = audp(epsilon=(0.1, 0.2, 0.3))
    found = config.guarantees([50, 60, 70], 10, 784)
    assert [g.release for g in found] == [Pure(0.1), Pure(0.2), Pure(0.3)]
    with pytest.raises(ScenarioError, match=r"one entry per client \(2\), got 3"):
        config.guarantees([50, 60], 10, 784)


def test_a_ratio_is_only_ever_the_clients_own_fresh_draw() -> None:
    found = sgd().guarantees([100, 40, 10], 10, 784)
    assert [g.release for g in found] == [
        Gaussian(2.0, 0.1),
        Gaussian(2.0, 0.25),
        Gaussian(2.0, 1.0),
    ]
    assert all(g.formal for g in found)
    assert one(sgd("shuffled")).release == Gaussian(2.0)
    assert one(sgd("shuffled"), n=99).release == Gaussian(1.0)
    assert one(sgd("replacement")).release == Gaussian(0.2)
    whole = one(sgd(clip="contribution"))
    assert whole.release == Gaussian(2.0)
    assert "all of a client's samples" in whole.why
    assert whole.protects == "one client's whole contribution, replaced"
    assert {g.protects for g in found} == {"one sample of one client, replaced"}
    assert one(sgd(law="spherical_laplace")).release == Pure(0.5, 0.1)
    whole = one(sgd(law="spherical_laplace", clip="contribution"))
    assert whole.release == Pure(0.5)
    assert one(sgd(multiplier=0.0)).release == Gaussian(0.0, 0.1)
    assert one(sgd(law="spherical_laplace", multiplier=0.0)).release.epsilon == math.inf


def test_no_noise_releases_nothing_that_could_be_accounted_for() -> None:
    assert Sgd(step_size=0.1, batch=10).guarantees([100], 10, 784) == ()


def test_a_budget_is_met_by_the_client_that_draws_the_largest_share() -> None:
    target = {"epsilon": 3.0, "releases": 50, "accountant": "gdp"}
    config = sgd(multiplier=None, budget=target)
    found = config.guarantees([100, 20], 10, 784)
    needed = config.mechanism.multiplier_at(0.5)  # pyright: ignore
    assert [g.release for g in found] == [Gaussian(needed, 0.1), Gaussian(needed, 0.5)]
    assert sgd().mechanism.multiplier_at(0.5) == 2.0  # pyright: ignore
    from stalesim.simulator.privacy.ledger import epsilon

    costs = [epsilon(g.release, 50, "gdp", 1e-5) for g in found]
    assert costs[1] == pytest.approx(3.0, rel=1e-5)
    assert costs[0] < costs[1] <= 3.0
