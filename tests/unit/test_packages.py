"""Files for conda and containers say what pyproject.toml says."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".ci" / "packages"
OTHERWISE = {"matplotlib": "matplotlib-base"}
"""Libraries that conda-forge calls otherwise."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load((PACKAGES / "recipe.yaml").read_text())


def test_conda_has_the_same_libraries(
    project: dict[str, Any], recipe: dict[str, Any]
) -> None:
    wanted = {f"python {project['requires-python']}"}
    for each in project["dependencies"]:
        name, versions = re.fullmatch(r"([\w-]+)(.*)", each).groups()  # type: ignore[union-attr]
        wanted.add(f"{OTHERWISE.get(name, name)} {versions}")
    assert {*recipe["requirements"]["run"]} == wanted
    assert recipe["context"]["version"] == project["version"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"stalesim = {project['scripts']['stalesim']}"
    assert (PACKAGES / recipe["source"]["path"]).resolve() == ROOT


def test_the_citation_has_the_version(project: dict[str, Any]) -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == project["version"]


def test_the_container_copies_what_there_is(project: dict[str, Any]) -> None:
    text = (PACKAGES / "Containerfile").read_text()
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert {"pyproject.toml", "setup.py", "simulator", "analysis", "scenarios"} <= names
    assert all((ROOT / name).exists() for name in names)
    assert {*project["license-files"], project["readme"]} <= names
    extras = ",".join(re.findall(r"EXTRAS=([\w,]+)", text)).split(",")
    assert {*extras} <= project["optional-dependencies"].keys()
