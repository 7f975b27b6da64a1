"""Templates run as they stand, under any name, and overwrite nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from stalesim.simulator.cli import new
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.scenario import read
from tests.commands import invoked


@pytest.mark.long
@pytest.mark.parametrize("kind", new.kinds())
def test_a_template_runs_and_passes_its_test(kind: str, tmp_path: Path) -> None:
    paths = new.write(kind, "slow_start", tmp_path / "mine")
    told = {path.name for path in paths}
    assert {"slow_start.yaml", "test_slow_start.py"} <= told
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert "my_part" not in text
        assert "MyPart" not in text
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "mine"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("law", "stalesim --plugin {0}.py timeline {0}.yaml"),
        ("protocol", "stalesim --plugin {0}.py timeline {0}.yaml"),
        ("algorithm", "stalesim --plugin {0}.py run {0}.yaml"),
        ("study", "stalesim run {0}.yaml"),
    ],
)
def test_it_is_said_how_a_template_is_run(
    kind: str, command: str, tmp_path: Path
) -> None:
    done = invoked("new", kind, "mine", "--out", tmp_path)
    *_, run, tests = done.output.splitlines()
    assert run == f"Next: {command.format(tmp_path / 'mine')}"
    assert tests == f"Test: pytest {tmp_path / 'test_mine.py'}"


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("modle", "mine", "did you mean 'model'?"),
        ("law", "My-Law", "NAME must be letters a to z"),
        ("law", "class", "NAME must be letters a to z"),
        ("law", "../mine", "NAME must be letters a to z"),
    ],
)
def test_what_there_is_no_template_for(
    kind: str, name: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words.replace("?", r"\?")) as caught:
        new.write(kind, name, tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("years of work")
    with pytest.raises(UserError, match=r"mine\.py must not exist"):
        new.write("law", "mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
    assert (tmp_path / "mine.py").read_text() == "years of work"


def test_a_study_starts_from_a_shipped_scenario(tmp_path: Path) -> None:
    path = new.copy("study", "mine", tmp_path, "quickstart")
    assert path == tmp_path / "mine.yaml"
    mine, shipped = read(path), read("quickstart")
    same = {"name": "quickstart"}
    assert mine.replaced(**same) == shipped.replaced(**same)
    with pytest.raises(UserError, match="did you mean 'quickstart'"):
        new.copy("study", "other", tmp_path, "quikstart")
    with pytest.raises(UserError, match="must not exist"):
        new.copy("study", "mine", tmp_path, "quickstart")
    with pytest.raises(UserError, match="--from must be of a study"):
        new.copy("law", "mine", tmp_path, "quickstart")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("quikstart", "did you mean 'quickstart'?"),
        ("zzz", "see stalesim list scenarios"),
    ],
)
def test_a_mistyped_scenario_is_answered_in_one_short_line(
    name: str, remedy: str, tmp_path: Path
) -> None:
    """Before, a name that was near to none was answered with all hundred."""
    with pytest.raises(ScenarioError) as refused:
        read(name)
    assert str(refused.value).endswith(remedy)
    with pytest.raises(UserError) as refused:
        new.copy("study", "mine", tmp_path, name)
    assert str(refused.value).endswith(remedy)
    assert len(str(refused.value)) < 100
