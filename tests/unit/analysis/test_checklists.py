"""Checklists are filled with what a study tells, and left open where it does not."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from stalesim.analysis import claims
from stalesim.analysis.page import checklists
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.trace import Study, StudyError, load
from tests.runs import tiny_study

REST = """\
replicates: 2
stop: {commits: 20}
evaluate: {every: {commits: 10}}
sweep: {algorithm.step_size: [0.1, 0.2]}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return load(tiny_study(tmp_path_factory, REST))


CLAIM = """\
replicates: 6
stop: {commits: 20}
evaluate: {every: {commits: 10}}
variants: {fast: {}, slow: {algorithm: {step_size: 1.0e-6}}}
claims:
  - {ahead: fast, than: slow, after: {commits: 20}, says: "larger | steps are ahead"}
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return load(tiny_study(tmp_path_factory, CLAIM))


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## \d+\. (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_facts_are_those_of_the_manifest(study: Study) -> None:
    found = sections(checklists.filled(study, "neurips"))
    assert len(found) == 16
    assert "2 independent replicates" in found["Experiment statistical significance"]
    compute = found["Experiments compute resources"]
    environment = study.manifest["environment"]
    assert f"platform {environment['platform']}" in compute
    assert "4 runs took" in compute
    assert "CC BY 4.0" in found["Licenses for existing assets"]
    assert "algorithm.step_size over 0.1, 0.2" in found["Experimental setting/details"]
    assert "nothing was judged" in found["Claims"]


def test_what_a_study_cannot_know_is_open(study: Study) -> None:
    found = sections(checklists.filled(study, "neurips"))
    for title in (
        "Theory assumptions and proofs",
        "Code of ethics",
        "Broader impacts",
        "Institutional review board approvals",
        "Declaration of LLM usage",
    ):
        assert checklists.OPEN in found[title]
        assert "From the study" not in found[title]
    answered = [title for title, text in found.items() if checklists.OPEN not in text]
    assert answered == [
        "Experimental result reproducibility",
        "Experiment statistical significance",
    ]


def test_one_replicate_has_no_error_bars(study: Study) -> None:
    single: Any = copy.copy(study)
    scenario = {**study.manifest["scenario"], "replicates": 1}
    single.manifest = {**study.manifest, "scenario": scenario}
    found = sections(checklists.filled(single, "neurips"))
    text = found["Experiment statistical significance"]
    assert "no error bars" in text
    assert "independent" not in text


def test_stress_des_has_all_of_its_items(study: Study) -> None:
    text = checklists.filled(study, "stress-des")
    numbers = re.findall(r"^### (\d\.\d) ", text, flags=re.MULTILINE)
    assert len(numbers) == 20
    assert "what is the purpose of the model?" in text  # the scenario states none


def test_a_report_has_a_table_of_claims(judged: Study) -> None:
    """A row for each verdict, with evidence; signs of tables in a claim are text."""
    (verdict,) = claims.evaluate(judged).itertuples()
    for name in ("mlrc", "tmlr"):
        text = checklists.filled(judged, name)
        head, _, row = re.findall(r"^\|.*\|$", text, flags=re.MULTILINE)
        cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
        assert cells["as its source says it"] == "larger &#124; steps are ahead"
        assert cells["verdict |"] == f"{verdict.verdict} |"
        assert cells["evidence"] == verdict.measured
        assert cells["replicates"] == "6"
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert titles[0] == "Claims and evidence"


@pytest.mark.parametrize("name", ["neurips", "mlrc", "tmlr"])
def test_a_study_without_claims_and_a_timeline(study: Study, name: str) -> None:
    assert "nothing was judged" in checklists.filled(study, name)
    world: Any = copy.copy(study)
    world.manifest = {**study.manifest, "kind": "timeline"}
    with pytest.raises(StudyError, match="is a timeline; take --checklist stress-des"):
        checklists.filled(world, name)


def test_files(study: Study, tmp_path: Path) -> None:
    path = checklists.write(study, "neurips")
    assert path == study.folder / "checklist-neurips.md"
    assert path.read_text(encoding="utf-8") == checklists.filled(study, "neurips")
    with pytest.raises(StudyError, match="the checklist must be written, but"):
        checklists.write(study, "neurips", tmp_path / "no" / "a.md")
    with pytest.raises(UserError, match="got 'neurps'; did you mean 'neurips'"):
        checklists.write(study, "neurps")
