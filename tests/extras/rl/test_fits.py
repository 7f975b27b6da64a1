"""Laws that are fitted to logs: known ones are found again, wrong ones refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.laws.fitting import (
    fit_in_groups,
    fit_law,
    shares_factor,
)
from stalesim.simulator.extras import rl
from stalesim.simulator.extras.rl.logs import import_samples
from stalesim.simulator.extras.rl.recording import record_rollouts
from stalesim.simulator.extras.rl.world.options import Generation
from stalesim.simulator.scenario.reading import read_any

pytestmark = pytest.mark.costly

FOUR = 4.0
"""Standard errors of an estimate that is near enough: 1 in 16,000 is not."""


def test_a_known_law_is_found_and_kept() -> None:
    rng, n = np.random.default_rng(1), 3000
    found = fit_law(rng.lognormal(np.log(1000), 0.8, n))
    assert found.accepted
    assert found.law is not None
    assert found.law["law"] == "lognorm"
    # The errors of the maximum-likelihood estimates are s / sqrt(n), s / sqrt(2 n).
    assert abs(found.law["s"] - 0.8) < FOUR * 0.8 / np.sqrt(2 * n)
    assert abs(np.log(found.law["scale"] / 1000)) < FOUR * 0.8 / np.sqrt(n)


def test_what_is_cut_off_counts_as_longer() -> None:
    rng, n = np.random.default_rng(2), 3000
    whole = rng.lognormal(np.log(1000), 0.8, n)
    found = fit_law(np.minimum(whole, 2000), whole >= 2000)
    assert found.accepted
    assert found.law is not None
    assert found.law["law"] == "lognorm"
    # With a fifth cut off the errors are below twice those of the whole.
    assert abs(found.law["s"] - 0.8) < 2 * FOUR * 0.8 / np.sqrt(2 * n)
    assert abs(np.log(found.law["scale"] / 1000)) < 2 * FOUR * 0.8 / np.sqrt(n)


def test_wrong_laws_are_refused_and_right_ones_seldom() -> None:
    rng = np.random.default_rng(3)
    two = np.r_[rng.normal(100, 5, 300), rng.normal(300, 5, 300)]
    rng.shuffle(two)
    found = fit_law(two)
    assert not found.accepted
    assert "Anderson-Darling: p = 0.005 < 0.01" in found.why
    rising = rng.lognormal(0, 0.3, 200) * np.linspace(1, 2, 200)
    assert "they drift, median 1" in fit_law(rising).why
    assert "20 values at least are needed, got 3" in fit_law(np.arange(1.0, 4)).why
    # Each of 12 is refused with a chance of at most 0.02: three are in 1 of 600.
    refused = [not fit_law(rng.lognormal(5, 0.5, 50)).accepted for _ in range(12)]
    assert sum(refused) < 3


def test_a_factor_of_groups_is_found() -> None:
    rng, groups, size = np.random.default_rng(4), 500, 4
    alone = rng.lognormal(5, 0.8, (groups, size))
    assert not shares_factor(alone)
    table = alone * rng.lognormal(0, 0.5, (groups, 1))
    assert shares_factor(table)
    inner, shared = fit_in_groups(table)
    assert inner.accepted
    assert inner.law is not None
    assert shared.law is not None
    within, between = inner.law["s"] ** 2, shared.law["s"] ** 2
    # Variances of normal values: chi squares of so many degrees of freedom.
    error = 0.64 * np.sqrt(2 / (groups * (size - 1)))
    assert abs(within - 0.64) < FOUR * error
    error = np.hypot((0.25 + 0.16) * np.sqrt(2 / (groups - 1)), error / size)
    assert abs(between - 0.25) < FOUR * error
    assert not fit_in_groups(np.sqrt(table) + table.mean())[0].accepted


WORLD = """\
name: drains
generation:
  {{slots: 8, tokens: {{law: gamma, a: 2, scale: 50}}, group: 2, max_async_level: 0,
  seconds_per_token: {speed}}}
trainer: {{samples: 16, step: {{law: constant, value: 1.5}}, seconds_per_token: 0.01}}
stop: {{steps: 40}}
"""


@pytest.mark.parametrize(
    ("speed", "law"),
    [("0.01+0.002*m", str), ('{"1": 0.01, "4": 0.01, "8": 0.05}', dict)],
)
def test_times_of_tokens_and_steps_are_found(
    speed: str, law: type, tmp_path: Path
) -> None:
    file = tmp_path / "drains.yaml"
    file.write_text(WORLD.format(speed=speed), encoding="utf-8")
    scenario = read_any(file)
    record_rollouts(scenario, tmp_path / "played")
    rl.log_of(tmp_path / "played").to_csv(tmp_path / "log.csv", index=False)
    override = ["generation.max_async_level=0"]
    told = import_samples(tmp_path / "log.csv", tmp_path / "there", override)
    fits: dict[str, Any] = {fit["key"]: fit["value"] for fit in told.manifest["fits"]}
    found = fits["generation.seconds_per_token"]
    assert isinstance(found, law)
    tree = {"slots": 8, "tokens": {"law": "expon"}, "seconds_per_token": found}
    speeds = Generation.model_validate(tree).speeds()
    # Times are rounded to 1e-6 s: of a sample's 0.1 s and more, 1e-5 in all.
    np.testing.assert_allclose(speeds, scenario.generation.speeds(), rtol=1e-4)
    assert fits["trainer.step"] == {"law": "constant", "value": 1.5}
    assert fits["trainer.seconds_per_token"] == 0.01
    again = read_any(tmp_path / "there" / "scenario.yaml")
    assert list(again.variants) == ["fitted", "replay"]


REMEMBERING = """\
name: remembering
generation:
  {{slots: 4, tokens: {tokens}, group: {group}, seconds_per_token: 0.01,
  max_async_level: 1{more}}}
trainer: {{samples: 4, step: {step}}}
stop: {{steps: 300}}
"""
PLAIN = "{law: gamma, a: 4, scale: 20}"


def _autoregressive(correlation: float) -> str:
    of = "{law: lognorm, s: 0.6, scale: 60}"
    return f"{{law: autoregressive, correlation: {correlation}, of: {of}}}"


def _imported(tmp_path: Path, **entries: Any) -> tuple[dict[str, Any], list[str]]:
    """Plays a world; returns what is fitted to its log by entry, and the remarks."""
    file = tmp_path / "remembering.yaml"
    known = {"tokens": PLAIN, "step": PLAIN, "group": 1, "more": ""}
    file.write_text(REMEMBERING.format(**known | entries), encoding="utf-8")
    record_rollouts(read_any(file), tmp_path / "played")
    rl.log_of(tmp_path / "played").to_csv(tmp_path / "log.csv", index=False)
    told = import_samples(tmp_path / "log.csv", tmp_path / "there").manifest
    return {fit["key"]: fit for fit in told["fits"]}, told["remarks"]


@pytest.mark.parametrize("key", ["generation.tokens", "trainer.step"])
def test_planted_memory_is_found_where_it_is(key: str, tmp_path: Path) -> None:
    fits, _ = _imported(tmp_path, **{key.split(".")[1]: _autoregressive(0.6)})
    assert fits[key]["value"]["of"]["law"] == "lognorm"
    (other,) = {"generation.tokens", "trainer.step"} - {key}
    for name, planted in ((key, 0.6), (other, 0.0)):
        found, n = fits[name]["value"], fits[name]["values"]
        # Of independent series one in a hundred has some memory by chance.
        correlation = (1 - found.get("noise", 0)) * found.get("correlation", 0)
        # The standard error of a lag-1 correlation is sqrt((1 - r**2) / n).
        assert abs(correlation - planted) < FOUR * np.sqrt((1 - planted**2) / n)


def test_measured_values_have_memory_where_no_law_is_tested(tmp_path: Path) -> None:
    fits, _ = _imported(tmp_path, step=_autoregressive(0.9))
    found = fits["trainer.step"]
    assert "20 values that far apart are needed" in found["why"]
    assert found["says"].startswith("a marginal law for autoregressive (correlation 0.")
    assert found["value"]["law"] == "autoregressive"
    assert found["value"]["of"]["column"] == "alone"


def test_memory_that_no_law_here_has_is_told(tmp_path: Path) -> None:
    cut, prompts = tmp_path / "cut", tmp_path / "prompts"
    for place in (cut, prompts):
        place.mkdir()
    fits, remarks = _imported(
        cut, tokens=_autoregressive(0.8), more=", most_tokens: 150"
    )
    assert fits["generation.tokens"]["value"]["law"] == "lognorm"
    (line,) = (line for line in remarks if "have memory" in line)
    assert line.startswith("lengths, which are cut off, have memory (")
    assert "autoregressive (" in line
    fits, remarks = _imported(
        prompts, group=4, more=f", difficulty: {_autoregressive(0.8)}"
    )
    assert "generation.difficulty" in fits
    (line,) = (line for line in remarks if "have memory" in line)
    assert line.startswith("mean lengths of successive prompts have memory")
