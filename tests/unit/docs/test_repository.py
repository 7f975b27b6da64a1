"""Files at the root that other programs and people read: licence, citation, hooks."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from typer.main import get_command

from stalesim.simulator.cli import app

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CODE = re.compile(r"`([^`]+)`")


def test_the_licence_is_the_declared_one() -> None:
    project = PROJECT["project"]
    assert project["license-files"] == ["LICENSE", "CITATION.cff"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert project["license"] == "Apache-2.0"
    head = " ".join(text.split("\n\n")[0].split())
    assert head.startswith("Apache License Version 2.0, January 2004")
    assert "9. Accepting Warranty or Additional Liability" in text


def test_the_citation_has_the_version_and_the_four_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    for key in ("version", "license"):
        assert cited[key] == project[key]
    assert cited["title"] == project["name"]
    decided = yaml.safe_load((ROOT / "evidence/decisions.yaml").read_text("utf-8"))
    sources = [about["source"] for about in decided["papers"].values()]
    papers = [source for source in sources if "*" in source]  # the others are none
    assert len(papers) == 4
    listed = []
    for paper in cited["references"]:
        names = [author["family-names"] for author in paper["authors"]]
        written = ", ".join(names[:-1]) + f" and {names[-1]}"
        listed.append(f"{written}, *{paper['title']}*.")
    assert {*papers} <= {*listed}


def test_hooks_need_no_network_and_their_programs_are_installed() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    tools = " ".join(PROJECT["project"]["optional-dependencies"]["dev"])
    assert [one["repo"] for one in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        program = {"lint-imports": "import-linter"}
        name = hook["entry"].removeprefix(".ci/installed ").split()[0]
        assert re.search(rf"\b{program.get(name, name)}\b", tools)


def test_the_public_check_is_the_local_one_on_the_oldest_python() -> None:
    path = ROOT / ".github" / "workflows" / "ci.yml"
    job = yaml.safe_load(path.read_text("utf-8"))["jobs"]["run"]
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == oldest


def test_templates_of_issues_say_what_they_are_for() -> None:
    paths = [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")]
    assert len(paths) == 5
    known: Any = get_command(app)
    for path in paths:
        head, text = path.read_text("utf-8").split("---\n")[1:]
        assert {"name", "about", "labels"} == {*yaml.safe_load(head)}
        assert {*re.findall(r"`stalesim (\w+)", text)} <= {*known.commands}


def test_files_that_contributors_are_sent_to_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if re.match(r"\| [a-z ]+ \|", line)]
    bases = [ROOT / base for base in ("", "simulator", "analysis/claims")]
    for name in CODE.findall("\n".join(table)):
        path = "NAME" not in name and ("/" in name or name.endswith(".py"))
        near = any((base / name).exists() for base in bases)
        assert not path or near or list(ROOT.glob(f"simulator/**/{name}")), name
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / link).exists(), link


RETRACTED = (
    r"61 of 75|65 of 75|up to six times|names the winner|when does asynchrony beat",
    r"linear reading is of a bound|neither is the paper's own",
    r"fresher samples do\b|replace freshness",
    r"average over earlier gradients|-1\.4[014] \[",
    r"six are the least that can decide",
)
"""Sentences that were withdrawn in November 2026; evidence.md says why."""


def test_what_was_retracted_stands_nowhere() -> None:
    found = re.compile("|".join(RETRACTED), re.IGNORECASE)
    telling = ROOT / "evidence/pages/evidence.md"
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pages += {*(ROOT / "evidence/pages").glob("*.md")} - {telling}
    pages += [*(ROOT / "notebooks").glob("*.ipynb"), *ROOT.glob("scenarios/**/*.yaml")]
    lines = {
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in pages
        for hit in [found.search(" ".join(path.read_text("utf-8").split()))]
        if hit
    }
    assert lines == set()
