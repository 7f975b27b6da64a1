"""Laws of durations: what they draw, on which clock, and keyed by what."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from stalesim.simulator.catalogue.laws.drifting import Drifting
from stalesim.simulator.catalogue.laws.empirical import Empirical
from stalesim.simulator.catalogue.laws.markov import Markov
from stalesim.simulator.catalogue.laws.mixture import Mixture
from stalesim.simulator.catalogue.laws.truncated import Clipped, Truncated
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.world.delays import LARGE, StageDelays
from stalesim.simulator.world.laws.base import (
    Draws,
    Population,
    common_tick,
    distinct_values,
)
from stalesim.simulator.world.laws.distributions import Constant, Scipy, is_discrete
from stalesim.simulator.world.laws.scaled import Scaled
from stalesim.simulator.world.laws.usual import USUAL
from stalesim.simulator.world.streams import Purpose, Streams

SHAPES = {
    "expon": {},
    "gamma": {"a": 2.5},
    "lognorm": {"s": 0.7},
    "norm": {},
    "pareto": {"b": 3.0},
    "poisson": {"mu": 3},
    "uniform": {},
    "weibull_min": {"c": 1.5},
}


MIDDLES = (np.arange(20_000) + 0.5) / 20_000


def _law(config: Any, num_clients: int = 1, seed: int = 1):
    return config.make(Population(num_clients, Streams(seed)))


def _draw(law: Any, n: int, client: int = 0, tick: Fraction | None = None):
    uniform = Streams(5).uniforms(Purpose.COMPUTE, client, 0, n)
    return law.draw(Draws(uniform, client, 0), tick)


@pytest.mark.parametrize("name", USUAL)
def test_our_quantiles_are_scipys(name: str) -> None:
    shapes = SHAPES[name]
    law = getattr(scipy.stats, name)(**shapes)
    ours = USUAL[name].ppf(MIDDLES, *shapes.values())
    np.testing.assert_allclose(ours, law.ppf(MIDDLES), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [-1.0, 1e-300, 3.0, np.inf, np.nan])
@pytest.mark.parametrize("name", USUAL)
def test_what_we_know_of_usual_laws_scipy_says(name: str, shape: float) -> None:
    ours, scipys = USUAL[name], getattr(scipy.stats, name)
    assert ours.shapes == scipys.shapes
    assert ours.discrete == isinstance(scipys, scipy.stats.rv_discrete)
    given = [shape] if ours.shapes else []
    np.testing.assert_array_equal(ours.support(*given), scipys.support(*given))
    low = ours.support(*given)[0]
    if np.isfinite(low):
        assert ours.sf(low, *given) == scipys.sf(low, *given)
        assert ours.sf(low + 0.5, *given) == scipys.sf(low + 0.5, *given)
        assert ours.cdf(low + 0.5, *given) == scipys.cdf(low + 0.5, *given)


@pytest.mark.parametrize("name", USUAL)
def test_usual_laws_in_their_places_are_scipys(name: str) -> None:
    shapes, place = SHAPES[name], {"loc": 2.0}
    if not USUAL[name].discrete:
        place["scale"] = 0.3
    ours = USUAL[name](**shapes, **place)
    scipys = getattr(scipy.stats, name)(**shapes, **place)
    at = np.concatenate([[-np.inf, -1, 2, 3, np.inf], scipys.ppf(MIDDLES[::100])])
    np.testing.assert_array_equal(ours.cdf(at), scipys.cdf(at))
    np.testing.assert_array_equal(ours.sf(at), scipys.sf(at))
    levels = MIDDLES[::100]
    np.testing.assert_allclose(ours.ppf(levels), scipys.ppf(levels), rtol=1e-12)
    assert ours.support() == scipys.support()
    assert ours.mean() == scipys.mean() == USUAL[name].mean(**shapes, **place)


def test_a_pareto_law_without_a_mean_says_so() -> None:
    found = USUAL["pareto"].mean(b=np.array([0.5, 1.0, 3.0]), scale=2.0)
    assert found.tolist() == [np.inf, np.inf, 3.0]


def test_every_scipy_law_can_be_drawn() -> None:
    law = _law(Scipy(law="geninvgauss", parameters={"p": 1.0, "b": 2.0}))
    drawn = law.draw(Draws(MIDDLES[::100], 0, 0), None)
    expected = scipy.stats.geninvgauss.cdf(drawn, 1.0, 2.0)
    np.testing.assert_allclose(expected, MIDDLES[::100], atol=1e-6)


def test_no_law_of_ours_has_a_name_of_scipys() -> None:
    """It would take the place of SciPy's law in every scenario, without a word."""
    from stalesim.simulator.parts.catalogue import parts

    fields = (part.model_fields.get("law") for part in parts("laws"))
    names = (field.default for field in fields if field is not None)
    ours = {name for name in names if isinstance(name, str)}
    assert ours
    assert not {name for name in ours if hasattr(scipy.stats, name)}


def test_parameters_differ_by_client() -> None:
    law = _law(Scipy(law="poisson", parameters={"mu": "2*m"}, scale="1/(2*M)"), 4)
    means = [_draw(law, 40_000, client).mean() for client in range(4)]
    # The mean of client m is m/4 s; its standard error sqrt(2 m) / 8 / 200 < 0.0018 s.
    np.testing.assert_allclose(means, [0.25, 0.5, 0.75, 1.0], atol=5 * 0.0018)


@pytest.mark.parametrize(
    ("configs", "tick"),
    [
        ([Constant(value="m/7")], Fraction(1, 7)),
        ([Constant(value=0.1), Constant(value=0.25)], Fraction(1, 20)),
        (
            [Scipy(law="poisson", parameters={"mu": 2}, scale="1/14", shift=1e-6)],
            Fraction(1, 7_000_000),
        ),
        ([Scipy(law="expon")], None),
        ([Scipy(law="poisson", parameters={"mu": 2}, scale="sqrt(2)")], None),
        ([Constant(value=1e-15)], None),
    ],
)
def test_lattice_laws_have_a_common_tick(configs: list, tick: Fraction | None) -> None:
    assert common_tick([_law(c, 3) for c in configs]) == tick


def test_ticks_are_exact() -> None:
    config = Scipy(law="poisson", parameters={"mu": 2}, scale="1/14", shift=1e-6)
    law = _law(config)
    ticks = _draw(law, 100, tick=Fraction(1, 7_000_000))
    seconds = _draw(law, 100)
    assert ticks.dtype == np.int64
    np.testing.assert_allclose(ticks / 7_000_000, seconds, rtol=1e-15)
    assert set(np.unique(ticks % 500_000)) == {7}


def test_an_impossible_duration_is_an_error_when_it_is_drawn() -> None:
    law = _law(Scipy(law="norm", shift=1))
    with pytest.raises(ScenarioError, match=r"finite durations >= 0.*client 1"):
        _draw(law, 10_000)


def _stage(num_clients: int) -> StageDelays:
    law = _law(Scipy(law="expon"), num_clients)
    return StageDelays(law, Purpose.COMPUTE, Population(num_clients, Streams(1)), None)


@pytest.mark.parametrize("num_clients", [1000, 5000])
def test_a_clients_draws_depend_on_nobody_else(num_clients: int) -> None:
    few, many = _stage(3), _stage(num_clients)
    alone = [few.next(2) for _ in range(2 * LARGE)]
    mixed = []
    for _ in range(2 * LARGE):
        many.next(999)
        mixed.append(many.next(2))
        many.next(0)
    assert alone == mixed


def test_numbers_for_many_clients_are_those_for_each() -> None:
    streams = Streams(9)
    clients, positions = np.arange(50) * 12_345, np.arange(50) * 7
    together = streams.scattered(Purpose.UPLOAD, clients, positions)
    alone = [
        streams.uniforms(Purpose.UPLOAD, c, p - p % 4, 4)[p % 4]
        for c, p in zip(clients.tolist(), positions.tolist(), strict=True)
    ]
    assert together.tolist() == alone
    assert ((together > 0) & (together < 1)).all()


def test_draws_differ_by_seed_client_block_and_purpose() -> None:
    first = Streams(1).at(Purpose.IDLE, 0, 0).random(4).tolist()
    others = [
        Streams(2).at(Purpose.IDLE, 0, 0),
        Streams(1).at(Purpose.COMPUTE, 0, 0),
        Streams(1).at(Purpose.IDLE, 1, 0),
        Streams(1).at(Purpose.IDLE, 0, 1),
    ]
    for other in others:
        assert other.random(4).tolist() != first
    streams = Streams(1)
    streams.at(Purpose.IDLE, 7, 3).integers(0, 5, 3, dtype=np.uint32)
    assert streams.at(Purpose.IDLE, 0, 0).random(4).tolist() == first


def test_blocks_of_a_stream_are_uncorrelated() -> None:
    streams = Streams(3)
    draws = np.stack(
        [streams.at(Purpose.IDLE, c, b).random(64) for c in range(40) for b in range(5)]
    )
    correlation = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    # 19,900 pairs of 64 draws: standard deviation 1/8; six of them bound the maximum.
    assert np.abs(correlation).max() < 6 / 8
    assert abs(correlation.mean()) < 6 / 8 / np.sqrt(correlation.size)


def test_a_parameter_is_drawn_once_per_client() -> None:
    config = Constant(value=Scipy(law="gamma", parameters={"a": 3.0}))
    law = _law(config, 20_000)
    first, again = (_draw(law, 3, client) for client in (0, 1))
    assert len(set(first)) == len(set(again)) == 1
    assert first[0] != again[0]
    clients = np.arange(20_000)
    values = law.draw(Draws(np.zeros(20_000), clients, 0 * clients), None)
    # The mean of a gamma law of shape 3 is 3, its standard deviation sqrt(3).
    assert abs(values.mean() - 3) < 5 * np.sqrt(3 / 20_000)


def test_a_mixture_has_its_weights_and_laws() -> None:
    parts = (Constant(value=7), Scipy(law="expon"))
    law = _law(Mixture(of=parts, weights=(1, 3)))
    drawn = law.draw(Draws(MIDDLES, 0, 0), None)
    assert (drawn == 7).mean() == 0.25
    others = drawn[drawn != 7]
    np.testing.assert_allclose(
        np.sort(others), scipy.stats.expon.ppf((np.arange(15_000) + 0.5) / 15_000)
    )


def test_a_mixture_of_three_has_its_weights() -> None:
    laws = tuple(Constant(value=value) for value in (1, 2, 3))
    law = _law(Mixture(of=laws, weights=(1, 2, 5)))
    drawn = law.draw(Draws(MIDDLES, 0, 0), None)
    shares = [(drawn == value).mean() for value in (1, 2, 3)]
    # Each interval of probabilities has its share of the midpoints, but for its ends.
    np.testing.assert_allclose(shares, [1 / 8, 2 / 8, 5 / 8], atol=2 / MIDDLES.size)


def test_regimes_follow_their_chain() -> None:
    parts = (Constant(value=1), Constant(value=2))
    law = _law(Markov(of=parts, transition=((0.9, 0.1), (0.3, 0.7))))
    assert common_tick([law]) == 1
    drawn = _draw(law, 100_000)
    # Stationary 3/4 and 1/4; the chain's correlation 0.6 inflates the variance by 4.
    assert abs((drawn == 2).mean() - 0.25) < 5 * np.sqrt(4 * 0.1875 / 100_000)
    after_slow = drawn[1:][drawn[:-1] == 2]
    assert abs((after_slow == 1).mean() - 0.3) < 5 * np.sqrt(0.21 / after_slow.size)


def test_regimes_do_not_depend_on_how_draws_are_blocked() -> None:
    parts = (Constant(value=1), Constant(value=2))
    config = Markov(of=parts, transition=((0.9, 0.1), (0.3, 0.7)))
    few = StageDelays(_law(config, 3), Purpose.COMPUTE, Population(3, Streams(1)), None)
    many = StageDelays(
        _law(config, 3), Purpose.COMPUTE, Population(3000, Streams(1)), None
    )
    assert [few.next(1) for _ in range(300)] == [many.next(1) for _ in range(300)]


def test_a_truncated_law_is_the_conditional_law() -> None:
    law = _law(Truncated(of=Scipy(law="expon"), low=0.5, high=2))
    drawn = law.draw(Draws(MIDDLES, 0, 0), None)
    assert drawn.min() >= 0.5
    assert drawn.max() <= 2
    cdf = scipy.stats.expon.cdf
    np.testing.assert_allclose(
        (cdf(drawn) - cdf(0.5)) / (cdf(2) - cdf(0.5)), MIDDLES, atol=1e-12
    )


def test_a_truncated_lattice_law_keeps_its_ends() -> None:
    law = _law(Truncated(of=Scipy(law="poisson", parameters={"mu": 3}), low=2, high=4))
    drawn = _draw(law, 5000)
    assert set(drawn) == {2, 3, 4}
    assert common_tick([law]) == 1


def test_clipped_draws_are_moved_to_the_bounds() -> None:
    """As `max(0, random.gauss(5, 1))` and a jitter cut at 0, which others' code has."""
    of = Scipy(law="norm", loc=0.5, scale=1)
    drawn = _law(Clipped(of=of)).draw(Draws(MIDDLES, 0, 0), None)
    np.testing.assert_allclose(
        drawn, np.maximum(0, scipy.stats.norm.ppf(MIDDLES, 0.5)), atol=1e-12
    )
    assert np.mean(drawn == 0) == pytest.approx(scipy.stats.norm.cdf(-0.5), abs=1e-3)
    mean = 0.5 * scipy.stats.norm.cdf(0.5) + scipy.stats.norm.pdf(0.5)  # textbook
    assert drawn.mean() == pytest.approx(mean, abs=1e-3)
    both = _law(Clipped(of=of, low=0.25, high=1)).draw(Draws(MIDDLES, 0, 0), None)
    assert (both.min(), both.max()) == (0.25, 1)


def test_a_clipped_law_that_is_all_nothing_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"durations above 0 s .* for client 1"):
        _law(Clipped(of=Scipy(law="uniform", loc=-2)))


def test_a_truncated_law_may_have_no_longest_duration() -> None:
    drawn = _law(Truncated(of=Scipy(law="norm"))).draw(Draws(MIDDLES, 0, 0), None)
    expected = scipy.stats.halfnorm.ppf(MIDDLES)
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)


def test_an_empty_truncation_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="between low 2 and high 3 s"):
        _law(Truncated(of=Scipy(law="uniform"), low=2, high=3))


def test_a_scaled_law_keeps_its_lattice() -> None:
    inner = Mixture(of=(Constant(value=1), Constant(value=3)), weights=(1, 1))
    law = _law(Scaled(of=inner, scale="m/4", shift=0.5), 2)
    assert common_tick([law]) == Fraction(1, 4)
    assert set(_draw(law, 100, client=1, tick=Fraction(1, 4))) == {4, 8}
    assert set(_draw(law, 100, client=1)) == {1.0, 2.0}


def test_a_scaled_law_that_gives_less_than_nothing_is_an_error() -> None:
    for law, tick in (
        (Scaled(of=Scipy(law="expon"), shift=-1), None),
        (Scaled(of=Constant(value=1), scale=2, shift=-3), Fraction(1)),
    ):
        with pytest.raises(ScenarioError, match="'scaled' must give durations >= 0"):
            _draw(_law(law), 100, tick=tick)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_measured_durations_are_replayed_and_resampled(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"delays.{suffix}"
    frame = pd.DataFrame({"who": [1, 2, 1, 2], "seconds": [0.1, 5.0, 0.2, 6.0]})
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    replay = Empirical(path=str(path), column="seconds", client="who", order="replay")
    law = _law(replay, 2)
    assert _draw(law, 5).tolist() == [0.1, 0.2, 0.1, 0.2, 0.1]
    clients = np.array([1, 0, 1])
    positions = np.array([3, 0, 4])
    scattered = law.draw(Draws(np.full(3, 0.5), clients, positions), None)
    assert scattered.tolist() == [6.0, 0.1, 5.0]
    law = _law(Empirical(path=str(path), column="seconds"))
    drawn = law.draw(Draws(MIDDLES, 0, 0), None)
    assert all((drawn == value).mean() == 0.25 for value in (0.1, 5.0, 0.2, 6.0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("seconds\n1\n-2\n", r"durations >= 0, got -2.0 in row 2"),
        ("seconds\n1\nfast\n", r"finite numbers, got 'fast' in line 3"),
        ("time\n1\n2\n", r"column 'seconds', got time"),
        ("seconds\n0\n0\n", r"duration above 0"),
    ],
)
def test_measurements_that_are_no_durations_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "delays.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        _law(Empirical(path=str(path), column="seconds"))


def test_every_client_needs_a_measured_duration(tmp_path: Path) -> None:
    path = tmp_path / "delays.csv"
    path.write_text("who,seconds\n1,2\n2,0\n2,0\n")
    law = Empirical(path=str(path), column="seconds", client="who")
    for number in (2, 3):
        with pytest.raises(UserError, match="above 0 for every client, got none for c"):
            _law(law, number)
    assert _draw(_law(law, 1), 3).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "config",
    [
        Constant(value="1/(2*m)"),
        Scipy(law="expon", loc=0.5, scale=(1, 2, 3), shift=0.25),
        Scipy(law="poisson", parameters={"mu": "m"}, loc=1, scale=0.5, shift="m/4"),
    ],
)
def test_a_closed_form_is_what_is_drawn(config: Any) -> None:
    law, form, middles = _law(config, 3), config.closed_form(3), MIDDLES[::100]
    for client in range(3):
        drawn = law.draw(Draws(middles, client, 0), None)
        loc, scale, shift, *shapes = (
            np.broadcast_to(column, 3)[client]
            for column in (form.loc, form.scale, form.shift, *form.shapes.values())
        )
        standard = form.family.ppf(middles, *shapes) if form.family else 0
        if form.family and is_discrete(form.family):
            expected = shift + scale * (loc + standard)
        else:
            expected = shift + loc + scale * standard
        assert drawn == pytest.approx(expected)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Scaled(of=Constant(value=1), scale=2), "known for the law 'scaled'"),
        (Constant(value=Scipy(law="expon")), "value is drawn for every client"),
        (Scipy(law="no_such"), "known for the law 'no_such'"),
    ],
)
def test_other_laws_have_no_closed_form(config: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config.closed_form(2)


def test_a_law_may_know_its_mean_without_a_closed_form() -> None:
    scaled = Scaled(of=Scipy(law="expon", scale="m"), scale=2, shift=1)
    assert scaled.mean_seconds(3).tolist() == [3, 5, 7]
    mixture = Mixture(of=(scaled, Constant(value=1)), weights=(1, 3))
    assert mixture.mean_seconds(3).tolist() == [1.5, 2, 2.5]
    chain = ((0.9, 0.1), (0.3, 0.7))
    regimes = Markov(of=(Constant(value=1), Constant(value=3)), transition=chain)
    assert regimes.mean_seconds(2) == pytest.approx([1.5, 1.5])
    heavy = Scipy(law="pareto", parameters={"b": 0.8})
    assert Drifting(of=heavy, factor=2, over=9).mean_seconds(1).tolist() == [np.inf]
    for law in (
        Drifting(of=scaled, factor=2, over=9),
        Mixture(of=(scaled, Empirical(path="x.csv", column="s")), weights=(1, 1)),
    ):
        with pytest.raises(ValueError, match="no mean is known for the law"):
            law.mean_seconds(2)


MEANS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"law": "lognorm", "s": 1}, 2, "2 / exp(0.5)"),
    ({"law": "pareto", "b": 1.5}, 1, "1/3"),
    ({"law": "expon", "shift": 0.25}, "1/m", "1/m - 1/4"),
    ({"law": "gamma", "a": [1, 2, 4]}, [2, 3, 4], [2, 1.5, 1]),
    ({"law": "burr12", "c": 3, "d": 2}, 1.5, None),
    ({"law": "geom", "p": 0.5}, "m/3", "m/6"),
    ({"law": "poisson", "mu": 2, "loc": 1, "shift": 0.5}, 2, 0.5),
]
"""Laws, their means, and the scales that a calculation by hand gives."""


@pytest.mark.parametrize(("law", "mean", "scale"), MEANS)
def test_a_law_is_scaled_to_its_mean(law: dict, mean: Any, scale: Any) -> None:
    config = Scipy.model_validate(law | {"mean": mean})
    config.check(3, "clients.compute")
    population = Population(3, Streams(1))
    sampler = config.make(population)
    values = distinct_values(mean, 3, "mean")
    wanted = np.array([float(value) for value in values] * (3 // len(values)))
    np.testing.assert_allclose(wanted, config.mean_seconds(3) + np.zeros(3))
    uniform = np.random.default_rng(0).random(100_000)
    for client, seconds in enumerate(wanted):
        drawn = sampler.draw(Draws(uniform, client, 0), None)
        # Five standard errors of what was drawn itself; of a Pareto law's, twenty.
        errors = 20 if law["law"] == "pareto" else 5
        error = errors * drawn.std() / np.sqrt(drawn.size)
        assert drawn.mean() == pytest.approx(seconds, abs=error)
    if scale is not None:
        other = Scipy.model_validate(law | {"scale": scale}).make(population)
        assert sampler.lattice() == other.lattice()
        for client in range(3):
            draws = Draws(uniform, client, 0)
            found, known = (each.draw(draws, None) for each in (sampler, other))
            np.testing.assert_allclose(found, known, rtol=1e-15)
    assert Scipy.model_validate(config.model_dump()) == config


def test_a_law_is_truncated_after_it_is_scaled_to_its_mean() -> None:
    draws = Draws(np.array([0.1, 0.9]), 0, 0)
    found, known = (
        Truncated.model_validate({"law": "truncated", "of": of, "high": 20})
        .make(Population(1, Streams(1)))
        .draw(draws, None)
        for of in ({"law": "expon", "mean": 5}, {"law": "expon", "scale": 5})
    )
    np.testing.assert_array_equal(found, known)


def test_a_mean_is_of_any_law_that_is_scaled() -> None:
    rare = {"law": "mixture", "of": [{"law": "expon"}, {"law": "expon", "scale": 11}]}
    law = {"law": "scaled", "of": rare | {"weights": [0.9, 0.1]}}
    mean = Scaled.model_validate(law | {"mean": "m"})
    mean.check(3, "clients.compute")
    assert mean.mean_seconds(3).tolist() == [1, 2, 3]
    scale = Scaled.model_validate(law | {"scale": "m/2"})
    draws = Draws(np.random.default_rng(0).random(100), 2, np.arange(100))
    population = Population(3, Streams(1))
    found, known = (each.make(population).draw(draws, None) for each in (mean, scale))
    np.testing.assert_array_equal(found, known)
    assert Scaled.model_validate(mean.model_dump()) == mean


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ({"law": "pareto", "b": 1, "mean": 1}, "left out for the law 'pareto', of"),
        ({"law": "pareto", "b": [2, 0.8], "mean": 1}, "no mean > 0 is known; give a"),
        ({"law": "cauchy", "mean": 1}, "no mean > 0 is known"),
        ({"law": "norm", "loc": 9, "mean": 1}, "no mean > 0 is known"),
        ({"law": "zipf", "a": 1.5, "mean": 1}, "no mean > 0 is known"),
        ({"law": "gamma", "a": {"law": "expon"}, "mean": 1}, "compute.mean must be l"),
        ({"law": "expon", "shift": 3, "mean": "2*m"}, "more than shift and loc .* 1;"),
        ({"law": "expon", "mean": [1, 2, 3]}, "mean must have one entry per client"),
        ({"law": "expon", "mean": 2, "scale": 1}, "must have a scale or a mean, got b"),
        ({"law": "scaled", "of": {"law": "expon"}, "mean": 2, "scale": 1}, "remove on"),
        ({"law": "scaled", "of": {"law": "pareto", "b": 1}, "mean": 2}, "law 'scaled'"),
    ],
)
def test_a_mean_that_is_none_is_refused(law: dict, words: str) -> None:
    kind = Scaled if law["law"] == "scaled" else Scipy
    with pytest.raises(ValueError, match=words):
        kind.model_validate(law).check(2, "clients.compute")
