"""What a user opens first: the README, the quickstarts, the pages that explain the house."""

import re
from pathlib import Path

import pandas as pd
import pytest

from stalesim.simulator.scenario import read

ROOT = Path(__file__).parents[3]
FIRST = (
    *("README.md", "docs/index.md", "docs/tutorial.md"),
    *("scenarios/quickstart.yaml", "scenarios/quickstart_vafl.yaml"),
)
CODE = re.compile(r"\b[A-Z]{1,4}-\d+[a-z]?\b")
"""Numbers of decisions and of rows, such as the V and the 5 of VAFL's fifth."""


def test_the_quickstart_compares_what_most_readers_come_for() -> None:
    scenario = read("quickstart")
    kinds = {"FedAvg": "fed_avg", "FedBuff": "fed_buff", "FedAsync": "fed_async"}
    patches = scenario.variants
    assert list(patches) == list(kinds)
    for name, patch in patches.items():
        algorithm = patch.get("algorithm", {"kind": scenario.algorithm.kind})
        assert algorithm["kind"] == kinds[name]
    assert [*scenario.clients.groups] == ["fast", "slow"]


@pytest.mark.parametrize("name", ["quickstart", "quickstart-vafl"])
def test_the_claims_of_a_quickstart_are_decided(name: str) -> None:
    """Few replicates decide nothing: README quotes these verdicts."""
    found = pd.read_csv(ROOT / "docs" / "results" / name / "claims.csv")
    said = [claim.says for claim in read(name.replace("-", "_")).claims]
    assert found["says"].tolist() == said
    assert {*found["verdict"]} <= {"holds", "does not hold"}


@pytest.mark.parametrize("name", FIRST)
def test_no_codes_stand_in_the_first_files(name: str) -> None:
    found = CODE.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [code for code in found if code not in ("SHA-256", "CRC-32")] == []
