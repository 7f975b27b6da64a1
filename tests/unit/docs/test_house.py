"""The house stays as it is measured: no circle, no class name twice, plain words."""

from pathlib import Path

import pytest

import house


def test_no_modules_import_in_a_circle() -> None:
    assert house.circle() == []


def test_a_class_name_stands_for_one_thing() -> None:
    assert house.doubles() == {}


def test_a_public_method_has_a_docstring_or_overrides_one() -> None:
    assert house.undocumented() == []


def test_nobody_else_asks_which_protocol_algorithm_or_row_it_is() -> None:
    assert house.questions() == []


@pytest.mark.parametrize(
    "line",
    [
        'if scenario["protocol"]["kind"] in SERVERLESS: ...',
        'kind = scenario["protocol"]["kind"]',
        'found = self.protocol.get("kind", "")',
        'if presence.get("kind") != "on_off": ...',
        'SERVERLESS = ("centralised", "gossip")',
        'RULES = {"asynchronous": ()}',
        'made = rows.loc[rows["kind"] == "COMMIT"]',
        "applies = np.isin(rows.kind, (Kind.COMMIT, 1))",
        "if isinstance(behaviour.availability, OnOff): ...",
        "match config.availability: # of a group\n    case OnOff(on=on): ...",
    ],
)
def test_a_question_about_a_kind_is_seen_however_it_is_asked(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check saw none of these, and two reports said false things."""
    names, kinds, classes = (
        house.part_names(),
        house.row_kinds(),
        house.part_classes(),
    )
    monkeypatch.setattr(house, "part_classes", lambda: classes)
    monkeypatch.setattr(house, "part_names", lambda: names)
    monkeypatch.setattr(house, "row_kinds", lambda: kinds)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    (tmp_path / "analysis").mkdir()
    module = tmp_path / "analysis" / "page.py"
    module.write_text(line)
    last = line.count("\n") + 1
    assert house.questions() == [f"analysis/page.py:{last}"]
    for other in ('rows["kind"].isin(COMMITS)', 'manifest.get("kind") == "timeline"'):
        module.write_text(other)
        assert house.questions() == []


def test_the_words_are_the_field_s() -> None:
    assert house.private_words() == []


def test_public_names_are_the_field_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert house.private_names() == []
    monkeypatch.setattr(house, "ROOT", tmp_path)
    (tmp_path / "analysis").mkdir()
    lines = ("class Heard:", "  fate: int", "def told(_): ...", "def f(asked): ...")
    (tmp_path / "analysis/standing.py").write_text("\n".join(lines))
    names = [each.rpartition(" ")[2] for each in house.private_names()]
    assert names == ["standing", "Heard", "fate", "told", "asked"]


def test_lines_are_counted_by_their_nature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "ROOT", tmp_path)
    (tmp_path / "simulator").mkdir()
    text = '"""A.\n\nB.\n"""\n\nimport os\n\n# why\nX = os.sep\n"""What X is."""\n'
    (tmp_path / "simulator" / "x.py").write_text(text)
    natures = {"docstrings": 5, "blank": 2, "imports": 1, "comments": 1, "code": 1}
    assert house.natures() == natures
