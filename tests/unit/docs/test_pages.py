"""The pages say what the program says: keys, columns, commands; examples work."""

import inspect
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.main import get_command

import offline
import pages
import pages_scenario
import stalesim
from stalesim.simulator.cli import app
from stalesim.simulator.files.study import COLUMNS
from stalesim.simulator.parts.catalogue import BASES
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import read, read_any
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.shipped import file_of
from stalesim.simulator.scenario.study import expand
from tests.support import VAFL

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    DOCS / "methods.md",
    DOCS / "reference/scenario.md",
    DOCS / "hierarchies.md",
    DOCS / "pipelines.md",
    *sorted((DOCS / "how-to").glob("*.md")),
    *sorted((DOCS / "extras").glob("*.md")),
    *sorted((DOCS / "families").glob("*.md")),
]
COMMANDED = [
    *(ROOT / "README.md", *sorted(DOCS.rglob("*.md"))),
    *sorted((ROOT / "evidence/pages").glob("*.md")),
]
MISTAKES = ("run delays.yaml -s algorithm.learning_rat=0.1",)
"""Commands that a page shows for the message."""
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^stalesim ([^:].+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def keys() -> str:
    return "\n".join(pages_scenario.scenario_pages().values())


def page_of(uri: str) -> Any:
    return SimpleNamespace(file=SimpleNamespace(src_uri=uri))


def examples(kind: str) -> list[tuple[str, str]]:
    return [
        (path.name, text)
        for path in PAGES
        for found, text in FENCED.findall(path.read_text(encoding="utf-8"))
        if found == kind
    ]


@pytest.mark.long
def test_the_tutorials_numbers_are_those_of_its_scenario(tmp_path: Path) -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    path = tmp_path / "delays.yaml"
    path.write_text(dict(FENCED.findall(text))["yaml"], encoding="utf-8")
    study = stalesim.simulate(path, tmp_path / "study")
    told = [
        row.split(" | ") for row in text.splitlines() if row.startswith("| async, ")
    ]
    told += [
        row.split(" | ") for row in text.splitlines() if row.startswith("| sync, ")
    ]
    times = stalesim.time_to_target(study, "test_accuracy", 0.85)
    finals = stalesim.final_values(study, "test_accuracy").groupby("group", sort=False)
    commits = stalesim.runs(study).groupby("group", sort=False)["commits"].mean()
    measured = zip(times["median"], finals["value"].mean(), commits, strict=True)
    for row, (time, final, made) in zip(told, measured, strict=True):
        assert float(row[1]) == pytest.approx(time, abs=4)  # two evaluations
        assert float(row[2]) == pytest.approx(final, abs=0.01)
        assert float(row[4].rstrip(" |")) == pytest.approx(made, abs=0.5)
    (verdict,) = stalesim.claims.evaluate(study).itertuples()
    ratio, low, high = map(
        float, re.findall(r"([\d.]+) times as fast \[([\d.]+), ([\d.]+)\]", text)[0]
    )
    assert verdict.verdict == "holds"
    for printed, found in (
        (ratio, verdict.estimate),
        (low, verdict.low),
        (high, verdict.high),
    ):
        assert printed == pytest.approx(found, rel=0.1)


def test_each_part_of_the_reference_has_its_place() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    found = [mark[1] for text in texts for mark in pages.MARK.finditer(text)]
    assert sorted(found) == sorted(pages.GENERATED)


def test_names_of_python_become_documentation_in_the_site() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    after = pages.on_page_markdown(text, page_of("reference/python.md"))
    assert "\n::: stalesim.simulator.simulate\n" in after
    assert "mkdocs serve" not in after


def test_readers_without_the_site_are_told_what_to_run_or_open() -> None:
    """Stubs said when the lists are made, and not how to see one at once."""
    stubs = [
        found[0].splitlines()[1]
        for path in (DOCS / "reference").glob("*.md")
        for found in pages.MARK.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(stubs) == 9
    for line in stubs:
        assert re.match(
            r"Run `(stalesim|help)|Open \[|The \[site\].* Without it, ", line
        )


def test_the_calls_of_the_python_page_have_these_arguments() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    section, seen = "", set()
    for line in text.splitlines():
        section = line if line.startswith("## ") else section
        row = re.match(r"\| `(\w+)\((.*)\)` \| `(.*?)`(?:: .*)? \|$", line)
        if row is None:
            continue
        name, given, example = row.groups()
        compile(example, name, "exec")
        method = section == "## A study"
        known = inspect.signature(getattr(stalesim.Study if method else stalesim, name))
        names = [each.strip("* ") for each in given.split(",")]
        names = [each for each in names if each not in ("", "...")]
        assert names == [each for each in known.parameters if each in names], name
        seen |= set() if method else {name}
        assert f"{'study' if method else 'stalesim'}.{name}(" in example
    functions = {n for n in stalesim.__all__ if inspect.isroutine(getattr(stalesim, n))}
    assert seen == functions


def test_a_key_that_parts_share_is_explained_once(keys: str) -> None:
    rows = [line for line in keys.splitlines() if line.startswith("| `split_seed`")]
    assert len(rows) == 1
    assert keys.count("`test_perplexity`") <= 2


def test_every_key_of_a_scenario_is_listed_with_a_link_that_exists(keys: str) -> None:
    text = keys
    schema = Scenario.model_json_schema()
    for name, of in schema["$defs"].items():
        section = text.split(f"{{ #{name} }}\n")[1].split("\n### ")[0]
        for key, what in of.get("properties", {}).items():
            assert ("const" in what) or f"`{key}`" in section
    for key in schema["properties"]:
        assert f"| `{key}` |" in pages_scenario.scenario_pages()[pages_scenario.FIRST]
    linked = set(re.findall(r"scenario\.md#([\w-]+)\)", text))
    assert linked <= {*pages_scenario.homes(), "per-client"}
    of_range = (
        "| `num` | integer&nbsp;≥&nbsp;2&nbsp;≤&nbsp;10000 | required | How many,"
    )
    assert of_range in text


def test_every_column_command_and_closed_form_is_listed() -> None:
    columns = pages.GENERATED["columns"]()
    for table, of_table in COLUMNS.items():
        section = columns.split(f"## {table}\n")[1].split("\n## ")[0]
        assert section.count("\n| `") == len(of_table)
    commands = pages.GENERATED["commands"]()
    root: Any = get_command(app)
    each = dict(root.commands)
    for group in [
        name for name, command in each.items() if hasattr(command, "commands")
    ]:
        inner = each.pop(group).commands
        each |= {f"{group} {name}": command for name, command in inner.items()}
    for name, command in each.items():
        section = commands.split(f"## stalesim {name}\n")[1].split("\n## ")[0]
        assert all(p.opts[-1] in section for p in command.params if len(p.opts) > 1)
    theory = pages.GENERATED["theory"]()
    assert "| `embedding_age_law` |" in theory
    assert "VAFL, equation 3 and Assumption 5." in theory


LIKE: dict[str, dict[str, Any]] = {
    "push_gossip": {"protocol": {"kind": "push_gossip"}},
}


@pytest.mark.parametrize("protocol", sorted(LIKE))
def test_what_fits_a_protocol_that_is_like_another_is_accepted(protocol: str) -> None:
    lines = pages.GENERATED["fits"]().splitlines()
    rows = ([cell.strip() for cell in line.split("|")] for line in lines)
    said = {name.strip("`"): f"`{protocol}`" in fit for _, name, _, fit, _ in rows}
    assert any(said.values())
    for algorithm in ("sgd", "malenia", "psgd", "adp2sgd", "sgp"):
        tree: dict[str, Any] = {
            "name": "fits",
            "problem": {
                "data": {"kind": "digits"},
                "partition": {"kind": "iid", "clients": 4},
            },
            "clients": {"compute": {"law": "expon"}},
            "algorithm": {"kind": algorithm, "step_size": 0.1, "batch": 4},
            "stop": {"commits": 5},
            "evaluate": {"every": {"commits": 1}},
        } | LIKE[protocol]
        if protocol == "push_gossip":
            tree["clients"]["idle"] = {"law": "constant", "value": 1}
        if algorithm == "adp2sgd":
            tree["algorithm"]["noise"] = {"sigma": 1}
        expected = nullcontext()
        if not said[algorithm]:
            expected = pytest.raises(ValueError, match=r"protocol\.kind must be one of")
        with expected:
            Scenario.model_validate(tree)


def test_links_to_files_that_are_no_pages_become_their_names() -> None:
    text = "see [notes](../notebooks/a.ipynb#x) and [b](b.md)"
    found = pages.on_page_markdown(text, page_of("fedbcd.md"))
    assert found == "see notes (`notebooks/a.ipynb`) and [b](b.md)"
    inner = "[c](../c.md)"
    assert pages.on_page_markdown(inner, page_of("how-to/a.md")) == inner


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "../evidence/pages/a.md#b", "evidence/a.md#b"),
        ("how-to/a.md", "../../evidence/README.md", "../evidence/README.md"),
        ("evidence/a.md", "../../docs/how-to/b.md", "../how-to/b.md"),
        ("evidence/a.md", "figures/b.png", "figures/b.png"),
        ("evidence/README.md", "pages/a.md", "a.md"),
    ],
)
def test_links_between_pages_and_evidence_are_those_of_the_site(
    page: str, link: str, expected: str
) -> None:
    found = pages.on_page_markdown(f"![x]({link})", page_of(page))
    assert found == f"![x]({expected})"


def test_pages_that_load_something_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "index.html"
    page.write_text('<a href="https://a.b">x</a><link rel="canonical" href="//a.b">')
    (tmp_path / "a.css").write_text("a {background: url(data:image/png;base64,AA)}")
    assert offline.main(tmp_path) == 0
    page.write_text('<script src="https://a.b/c.js"></script><pre class="mermaid">')
    (tmp_path / "a.css").write_text('@import "//a.b/d.css"; b {src: url(http://e.f)}')
    assert offline.main(tmp_path) == 1
    told = capsys.readouterr().err
    for address in ("https://a.b/c.js", "mermaid", "//a.b/d.css", "http://e.f"):
        assert address in told
    assert offline.main(tmp_path / "nothing") == 1


@pytest.mark.parametrize(("page", "text"), examples("yaml"))
def test_examples_of_scenarios_are_valid(page: str, text: str, tmp_path: Path) -> None:
    tree = yaml.safe_load(text)
    path = tmp_path / "example.yaml"
    if "name" in tree:
        path.write_text(text, encoding="utf-8")
        assert len(expand(read_any(path))) >= 1
        return
    base = VAFL
    rows = {"partition": {"kind": "iid", "clients": 4}}
    by_rows = {"kind": "sgd", "step_size": 0.1, "batch": 8}
    if not set(tree) & {"problem"}:
        tree = {"problem": VAFL["problem"] | rows} | tree
    tree = base | {"algorithm": by_rows} | tree
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    assert len(expand(read(path))) >= 1, page


def parsed(words: list[str]) -> dict[str, Any]:
    """Returns the arguments of a command, parsed and checked as by the program."""
    command: Any = get_command(app)
    context = command.make_context("stalesim", words)
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)
    return context.params


def commands_of(text: str) -> list[str]:
    """Returns the commands that a page has in its blocks of code."""
    shown = re.sub(r"^(?!    ).*\n", "", text, flags=re.MULTILINE).replace("    ", "")
    fenced = "".join(block for kind, block in FENCED.findall(text) if kind == "sh")
    found = COMMAND.findall(re.sub(r"\\\n\s*", " ", f"{shown}\n{fenced}"))
    return [re.sub(r"\s+>\s.*", "", line) for line in found]  # the shell's


@pytest.mark.parametrize(
    "path", COMMANDED, ids=lambda path: str(path.relative_to(ROOT))
)
def test_commands_that_pages_show_can_be_given(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And their scenarios can be read: shipped ones, and those that a page shows."""
    monkeypatch.chdir(ROOT)
    text = path.read_text(encoding="utf-8")
    own = [block for kind, block in FENCED.findall(text) if kind == "yaml"]
    whole = [block for block in own if re.search(r"^name:", block, re.MULTILINE)]
    for line in commands_of(text):
        given = parsed(shlex.split(line, comments=True))
        if given.get("scenario") is None:
            continue
        file = file_of(given["scenario"])
        if not file.exists() and len(whole) == 1:
            file = tmp_path / file.name
            file.write_text(whole[0], encoding="utf-8")
        if not file.exists():  # the reader's own
            assert len(file.parts) == 1, line
            continue
        with pytest.raises(UserError) if line in MISTAKES else nullcontext():
            read_any(file, given["set_"] or ())


@pytest.mark.parametrize("line", ["run quickstart --dri-run", "timline quickstart"])
def test_a_command_that_does_not_exist_is_seen(line: str) -> None:
    with pytest.raises(Exception, match="No such"):
        parsed(shlex.split(line))


@pytest.mark.parametrize(("page", "text"), examples("python"))
def test_names_that_examples_use_exist(page: str, text: str) -> None:
    from stalesim import analysis, simulator

    compile(text, page, "exec")
    for module in (analysis, simulator):
        for name in re.findall(rf"\b{module.__name__}\.(\w+)", text):
            assert hasattr(module, name), name


def test_the_reference_of_scenarios_says_what_every_key_means(keys: str) -> None:
    rows = [line for line in keys.splitlines() if line.startswith("| `")]
    assert len(rows) > 300
    assert [row for row in rows if row.rstrip().endswith("|  |")] == []


def test_each_class_and_kind_is_described_once(keys: str) -> None:
    shown = re.findall(r"{ #([\w-]+) }", keys)
    assert len(shown) == len(set(shown))
    kinds = " ".join(pages_scenario.PAGES.values()).split()
    assert {*BASES} - {*kinds} == {"figures"}


def test_each_part_has_an_example(keys: str) -> None:
    """Of a scenario, a page or `docs/reference/examples.yaml`."""
    sections = re.split("^### ", keys, flags=re.MULTILINE)[1:]
    parts = [section for section in sections if re.match(r"`\w+` {", section)]
    assert len(parts) > 150
    assert [part.split()[0] for part in parts if "```yaml" not in part] == []


def test_links_to_the_reference_of_scenarios_lead_to_the_page_with_the_anchor() -> None:
    text = "[law](../reference/scenario.md#laws)"
    found = pages.on_page_markdown(text, page_of("how-to/sweep.md"))
    assert found == "[law](../reference/scenario/laws.md#laws)"
