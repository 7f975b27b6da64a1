"""Every mistake ends in one line with the file, the line, what and the remedy."""

from pathlib import Path

import pytest
import yaml

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads, placing, read, validated
from tests.unit.scenario.mistakes import TABLES

GOOD = TABLES["scenario study"]["good"]


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = GOOD.replace("time: 10", "time: -1").replace("l2: 0.001", "l2: -1")
    text = text.replace("name: study\n", "").replace("seed: 1", "seed: 1\nreplicats: 2")
    with pytest.raises(ScenarioError) as caught:
        loads(text, "f")
    said = str(caught.value).split("\n")
    assert [line.split()[:2] for line in said] == [
        ["f:2:", "replicats"],
        ["f:7:", "problem.l2"],
        ["f:16:", "stop.time"],
        ["f:1:", "name"],
    ]


def test_mistakes_beyond_ten_are_counted() -> None:
    wrong = "".join(f"wrong_{number}: 1\n" for number in range(12))
    with pytest.raises(ScenarioError) as caught:
        loads(GOOD + wrong, "f")
    said = str(caught.value).split("\n")
    assert len(said) == 11
    assert said[-1] == "and 2 more mistakes"
    with pytest.raises(ScenarioError) as again:
        validated(yaml.safe_load(GOOD + wrong))
    assert again.value.args == tuple(line.partition(": ")[2] or line for line in said)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["no such file; check the path"]),
        (b"", [":1: must hold a scenario", "empty; begin with name"]),
        (b"# nothing\n", [":1: must hold a scenario", "empty; begin with name"]),
        (b"- a\n- b\n", [":1: must be a mapping", "got a list; begin with name"]),
        (b"name\n", [":1: must be a mapping", "got text; begin with name"]),
        (b"a: 1\n---\nb: 1\n", [":2: must be YAML", "look for"]),
        (b"a: 1\n\tb: 2\n", [":2: must be YAML", "use spaces"]),
        (b"a: b: c\n", [":1: must be YAML", "look for"]),
        (b"\xff\xfe\x00", ["UTF-8, got the byte 0xff", "save it as UTF-8"]),
        (b"x: " + b"[" * 2000, [":1: is nested too deep; flatten it"]),
    ],
)
def test_a_file_that_is_no_scenario(
    content: bytes | None, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    for word in words:
        assert word in message


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"got a folder; name a \.yaml file"):
        read(tmp_path)


def test_a_mistake_that_planning_finds_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: a\nproblem:\n  partition:\n    kind: vertical\n")
    for said, line in (
        ("problem.partition.groups.a must hold a column, got none; add one", 3),
        ("problem.data must be there", 2),
        ("every run failed", None),
    ):
        with pytest.raises(ScenarioError) as error, placing(path):
            raise ScenarioError(said)
        where = "" if line is None else f"{path}:{line}: "
        assert str(error.value) == f"{where}{said}"
