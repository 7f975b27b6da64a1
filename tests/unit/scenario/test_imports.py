"""Reading the package costs little: what is heavy is imported where it is needed."""

import subprocess
import sys

import pytest

from stalesim.simulator import scenario

HEAVY = ("jax", "pandas", "scipy.stats", "simpy", "matplotlib")


@pytest.mark.parametrize(
    "module", ["stalesim.simulator.scenario", "stalesim.simulator.scenario.reading"]
)
def test_nothing_heavy_is_imported(module: str) -> None:
    code = f"import sys, {module}; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_every_public_name_is_there() -> None:
    for name in scenario.__all__:
        assert getattr(scenario, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = scenario.nothing
