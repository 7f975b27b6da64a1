"""What a user opens first: the README, the quickstarts, the pages on concepts."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from stalesim.simulator.scenario import read
from tests.attacks.__main__ import replaced

ROOT = Path(__file__).parents[3]
FIRST = (
    *("README.md", "docs/index.md", "docs/tutorial.md", "docs/concepts.md"),
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
    found = pd.read_csv(ROOT / "evidence/results" / name / "claims.csv")
    said = [claim.says for claim in read(name.replace("-", "_")).claims]
    assert found["says"].tolist() == said
    assert {*found["verdict"]} <= {"holds", "does not hold"}


@pytest.mark.parametrize("name", FIRST)
def test_no_codes_stand_in_the_first_files(name: str) -> None:
    found = CODE.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [code for code in found if code not in ("SHA-256", "CRC-32")] == []


def test_the_readme_is_short_and_its_commands_are_those_of_ci() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = readme.splitlines()
    assert len(lines) <= 150
    assert "pip install . && stalesim run quickstart" in lines
    assert 'pip install ".[test]" && pytest' in lines
    for link in re.findall(r"\]\(([\w/.-]+)[)#]", readme):
        assert (ROOT / link).exists(), link


def test_the_pages_have_a_tab_for_each_purpose() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    nav = yaml.safe_load(text)
    assert [next(iter(each)) for each in nav] == [
        "Home",
        "Get started",
        "Tutorials",
        "How-to",
        "Reference",
        "Gallery",
        "Papers",
        "Contributing",
    ]


def test_a_section_of_the_attacks_is_replaced_alone() -> None:
    page = "# A\n\n<!-- one -->\n## One\n\nold\n\n<!-- two -->\n## Two\n"
    new = replaced(page, "one", "## One\n\nnew\n")
    assert new == page.replace("old", "new")
    assert replaced(page, "two", "## Three\n") == page.replace("Two", "Three")
