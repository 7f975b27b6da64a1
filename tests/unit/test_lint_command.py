"""`stalesim lint`: what is wrong with a comparison, before it is run."""

from pathlib import Path

import pytest
import yaml

from stalesim.analysis import linting
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import loads
from tests.commands import invoked
from tests.runs import TINY

FASTER = {"faster": "a", "than": "b", "to": {"test_accuracy": 0.9}, "says": "own"}
HIGHER = {"higher": "a", "than": "b", "says": "own"}
BUFFER = {
    "protocol": {"kind": "buffered", "size": 2},
    "algorithm": {"kind": "fed_buff", "inherit": True, "local_steps": 1},
}


def found(b: dict, claim: dict = FASTER, **rest: object) -> list[str]:
    """Returns the findings on two variants, the second one with some changes."""
    usual = {"stop": {"time": 20}, "evaluate": {"every": {"time": 5}}, "replicates": 8}
    more = usual | rest | {"variants": {"a": {}, "b": b}, "claims": [claim]}
    scenario = loads(TINY + yaml.safe_dump(more), "x.yaml")
    return [text for _, text in linting.findings(scenario)]


COMMITS = {"stop": {"commits": 50}, "evaluate": {"every": {"commits": 5}}}


@pytest.mark.parametrize(
    ("b", "claim", "rest", "said"),
    [
        ({"algorithm": {"batch": 32}}, FASTER, {}, "algorithm.batch (8 and 32)"),
        (BUFFER, FASTER | {"counted_in": "commits"}, {}, "a commit (8 and 16)"),
        (BUFFER, HIGHER, COMMITS, "samples a commit (8 and 16), but commits"),
        (
            {"evaluate": {"every": {"time": 10}}},
            FASTER,
            {},
            "evaluate.every (time 5 and time 10)",
        ),
        (
            {"sweep": {"algorithm.step_size": [0.1, 0.2]}},
            HIGHER,
            {},
            "b alone is swept over algorithm.step_size, of which a has one value",
        ),
        (
            {"protocol": {"staleness_bound": 1, "beyond": "stop"}},
            HIGHER,
            COMMITS,
            "b alone stops jobs, which commits do not count",
        ),
    ],
)
def test_a_difference_that_no_name_says_is_found(
    b: dict, claim: dict, rest: dict, said: str
) -> None:
    (line,) = found(b, claim, **rest)
    assert said in line


@pytest.mark.parametrize(
    ("b", "claim", "rest"),
    [
        ({"algorithm": {"batch": 32}}, FASTER | {"says": "batches of 32"}, {}),
        (BUFFER, FASTER, {}),  # seconds are the same for all
        (BUFFER, HIGHER, {}),
        (BUFFER, HIGHER, COMMITS | {"question": "At equal commits?"}),
        ({}, HIGHER, {"sweep": {"algorithm.step_size": [0.1, 0.2]}}),
        (
            {"sweep": {"algorithm.step_size": [0.1, 0.2]}},
            HIGHER | {"at": {"algorithm.step_size": 0.1}},
            {},
        ),
        ({"protocol": {"staleness_bound": 1, "beyond": "stop"}}, FASTER, {}),
    ],
)
def test_what_is_said_or_fair_is_not_found(b: dict, claim: dict, rest: dict) -> None:
    assert found(b, claim, **rest) == []


def test_variants_without_claims_are_compared_with_the_first() -> None:
    rest = "stop: {time: 9}\nevaluate: {every: {time: 3}}\n"
    variants = "variants: {a: {}, b: {}, c: {algorithm: {batch: 9}}}\n"
    ((keys, _),) = linting.findings(loads(f"{TINY}{rest}{variants}", "x.yaml"))
    assert keys == ("variants", "c")


def test_a_line_says_where(tmp_path: Path) -> None:
    more = "stop: {time: 9}\nevaluate: {every: {time: 3}}\n"
    path = tmp_path / "x.yaml"
    path.write_text(
        f"{TINY}{more}variants:\n  a: {{}}\n  b: {{algorithm: {{batch: 9}}}}\n"
    )
    assert invoked("lint", "--strict", path).exit_code == 1
    result = invoked("lint", path)
    assert result.exit_code == 0
    (line,) = result.output.splitlines()
    assert line.startswith(f"{path}:12: variants.b: a and b differ in algorithm.batch")
    path.write_text(f"{TINY}{more}")
    result = invoked("lint", path)
    assert (result.exit_code, result.output) == (0, "No findings\n")


def test_a_folder_is_linted_file_by_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"study was run, or .* by stalesim check"):
        invoked("lint", tmp_path)
    rest = "stop: {time: 9}\nevaluate: {every: {time: 3}}\n"
    variants = "variants: {a: {}, b: {algorithm: {batch: 9}}}\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(f"{TINY}{rest}{variants}")
    lines = invoked("lint", tmp_path).output.splitlines()
    assert [Path(line.partition(":")[0]).stem for line in lines] == ["one", "two"]


def test_all_commands_say_remarks_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{TINY}stop: {{time: 9}}\nevaluate: {{every: {{time: 30}}}}\n")
    said = "evaluate.every.time is 30 virtual s, but runs end at 9: they are evaluated"
    said += " at their beginning and end alone"
    linted = invoked("lint", path)
    assert (linted.exit_code, linted.output) == (0, f"{path}: {said}\n")
    for command in (("run", "--dry-run"), ("timeline", "-o", tmp_path / "out")):
        assert invoked(*command, path).stderr == f"stalesim: warning: {said}\n"
