"""A study whose every word would do something, through every command that shows it."""

import html
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from stalesim.analysis import style
from stalesim.simulator.parts.errors import one_line, printable
from tests import commands
from tests.commands import each

ROOT = Path(__file__).parents[2]
LONG = "a" * 10_000
NAMES = (
    "[/b]",
    "x[red]y[/red] [bold]",
    "$x$ $\\frac$",
    "_under_score_",
    r"back\slash \alpha \n",
    "emoji \U0001f600 :smile:",
    "\x1b[31mred\x1b[0m \x07\x00",
    "two\nlines\r",
    "\u202eabc\u202c \u2028",
    '=HYPERLINK("http://evil")',
    "<script>alert(1)</script><!-- -->",
    "`code` **bold** [l](http://e)|x #",
    "100 %_#~^&{} {{ 7 * 7 }} {0} %s",
    "\u5feb \u0627\u0644",
    LONG,
)
GROUPS = ("[/b]$x$_g/..", "\x1b[31mg\n")
SCENARIO = """\
name: hostile
seed: 1
problem:
  data: {kind: breast_cancer, scale: standard}
  partition: {kind: iid, clients: 4}
protocol: {kind: synchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 10}
evaluate: {every: {commits: 2}, metrics: [test_accuracy]}
engine: {mode: compiled}
"""
SPACED = re.compile(r"[\s\u2010-]")
# Wide enough that no name is broken, so that it can be looked for.
ENVIRONMENT = {
    **os.environ,
    "COLUMNS": "2000",
    "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, sys.path))),
}


def stalesim(*arguments: object) -> subprocess.CompletedProcess[str]:
    done = commands.stalesim(*arguments, env=ENVIRONMENT, timeout=600)
    assert "Traceback" not in done.stderr, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return done


def everything(done: subprocess.CompletedProcess[str]) -> str:
    """Returns what was shown of a command that went well."""
    assert done.returncode == 0, done.stderr
    assert not re.search("[\x00\x07\r\u2028\u202a-\u202e]", done.stdout)
    return done.stdout


def tree() -> dict:
    """Returns a scenario in which all text is hostile."""
    found = yaml.safe_load(SCENARIO)
    found["source"] = found["question"] = " ".join(NAMES[:-1])
    found["clients"] = {
        "groups": {
            name: {"number": 2, "compute": {"law": "expon", "scale": scale}}
            for scale, name in enumerate(GROUPS, 1)
        }
    }
    found["variants"] = {
        name: {"algorithm": {"step_size": 0.1 + number / 100}}
        for number, name in enumerate(NAMES)
    }
    found["claims"] = [
        {"higher": one, "than": other, "metric": "test_accuracy", "says": f"[/i] {one}"}
        for one, other in itertools.pairwise(NAMES)
    ]
    return found


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "[red]$x$ {}.yaml"
    path.write_text(yaml.safe_dump(tree(), sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ran(scenario: Path) -> tuple[Path, str]:
    """Runs the study; returns its folder, whose name is awkward, and what was said."""
    folder = scenario.parent / "out [/b] $x$ \x1b[31m"
    return folder, everything(
        stalesim("run", scenario, "-o", folder, "-j", 1, "--no-plots")
    )


def test_a_dry_run_shows_all_names_as_they_are(scenario: Path) -> None:
    shown = everything(stalesim("run", scenario, "--dry-run"))
    for name in NAMES[:-1]:
        assert f" {one_line(name)} " in shown
    assert "aaa...aaa" in shown


def test_the_closing_table_and_the_claims_are_literal(ran: tuple[Path, str]) -> None:
    folder, shown = ran
    checked = everything(stalesim("check", folder))
    for name in NAMES[:-1]:
        for line in printable(name).split("\n"):
            assert f" {line} " in shown
        assert f": [/i] {one_line(name)}\n" in checked
        assert f"  [/i] {one_line(name)}  " in shown
    for one, other in itertools.pairwise(NAMES[:-1]):
        assert f"    {one_line(one)} higher than {one_line(other)} in " in checked
    assert max(map(len, checked.splitlines())) < 1000
    assert f"Study: {one_line(str(folder))}" in shown


def test_figures_show_names_as_they_are(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    everything(stalesim("plot", folder, "--format", "svg"))
    drawn = sorted((folder / "figures").glob("*.svg"))
    assert [path.stem for path in drawn] == [
        "convergence-rounds",
        "convergence-time",
        "time-to-target",
    ]
    for path in drawn:
        parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
        nodes = ET.parse(path, parser).getroot().iter()
        # Matplotlib writes text as a comment, line by line, and no two dashes in a row.
        said = "".join(node.text or "" for node in nodes if node.tag is ET.Comment)
        words = SPACED.sub("", html.unescape(said))
        for name in NAMES[:-1]:
            shown = style.text(name, 10_000).replace(r"\$", "$")
            assert SPACED.sub("", shown) in words


@pytest.mark.long
def test_the_page_is_text_and_no_code_of_the_users(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    everything(stalesim("report", folder))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<code>code</code>" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u2028\u202a-\u202e]", page)
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    for name in NAMES:
        assert printable(name) in text
    assert text.count("7 * 7") >= 3


def test_a_folder_of_another_study_is_refused_in_one_line(
    ran: tuple[Path, str], scenario: Path
) -> None:
    folder, _ = ran
    changed = ("-s", "algorithm.batch=9")
    done = stalesim("run", scenario, "-o", folder, *changed)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if "cannot decide" not in line]
    assert len(told) == 1
    assert "its run '[/b]' differs: algorithm.batch was" in done.stderr


@pytest.mark.long
def test_a_timeline_is_literal(scenario: Path, tmp_path: Path) -> None:
    shown = everything(stalesim("timeline", scenario, "-o", tmp_path / "out"))
    for name in NAMES[:-1]:
        assert f"\n{one_line(name)}: 10 server updates, " in shown
    everything(stalesim("report", tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    for name in (*NAMES, *GROUPS):
        assert printable(name) in text


PLUGIN = '''
from typing import Literal
from stalesim.simulator.world.laws.base import Law

class Odd(Law):
    """[/b] [red]law[/red] :smile: \x1b[31m $x$"""
    law: Literal["[/b]"] = "[/b]"

STALESIM = {"laws": (Odd,)}
'''


def test_a_list_of_parts_is_literal(tmp_path: Path) -> None:
    file = tmp_path / "odd_part.py"
    file.write_text(PLUGIN, encoding="utf-8")
    shown = everything(stalesim("--plugin", file, "list"))
    assert re.search(
        r"laws +\[/b\] +odd_part +\[/b\] \[red\]law\[/red\] :smile: \\x1b\[31m \$x\$",
        shown,
    )


def test_users_mistakes_are_literal() -> None:
    calls = (
        ("run", "[/b].yaml"),
        ("[/b]",),
        ("run", "x.yaml", "--[/b]"),
        ("check", "[/b]\x1b[31m"),
        ("list", "[/b]"),
    )
    done = each(*calls, env=ENVIRONMENT)
    assert done.stdout.count("ended with 2\n") == len(calls)
    lines = done.stderr.splitlines()
    assert len(lines) == len(calls), lines
    assert all("[/b]" in line and "\x1b" not in line for line in lines)
