"""Commands that run nothing: `list`, `new`, `calibrate`, `doctor`, `schema`."""

import json
import re
import sys
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from ..parts import errors
from ..parts.errors import UserError, documented_key, nearest, shown, suggestion
from .console import out

app = typer.Typer()

ELSEWHERE = ("scenarios", "worlds", "optimizers")
"""Kinds that are in no table of parts."""


@app.command("list", rich_help_panel="Scenarios")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(help="laws, scenarios, ..., or a name (default: all)"),
    ] = None,
) -> None:
    """List laws, protocols, algorithms, models, data, scenarios.

    A name prints the options of the component. The name of a method also
    prints its chain of stages as YAML.
    """
    from . import showing

    if kind == "scenarios":
        _list_scenarios()
        return
    if kind == "worlds":
        _list_worlds()
        return
    from ..parts.base import OPEN
    from ..parts.catalogue import listing

    rows, wanted = listing(), kind
    if wanted is not None:
        known = [*dict.fromkeys(row[0] for row in rows), *ELSEWHERE]
        of_kind = [row for row in rows if row[0] in (wanted, f"{wanted}s")]
        rows = of_kind or [row for row in rows if row[1] == wanted]
        if not rows and _show_others(wanted):
            return
        if not rows:
            names = [*known, *(row[1] for row in listing()), *showing.optimizers()]
            hint = suggestion(wanted, names if nearest(wanted, names) else known)
            if place := errors.elsewhere(wanted, (), at_top=True):
                hint = f"a scenario has the key {place}"
            raise UserError(
                f"KIND must be a kind of parts or the name of one, got "
                f"{shown(wanted)}; {hint}"
            )
    added = any(source != "stalesim" for _, _, source, _ in rows)
    heads = ("kind", "name", "from", "what it is")
    table = Table(*(head for head in heads if added or head != "from"), box=None)
    for kind, name, source, about in rows:
        called = "(any of scipy.stats)" if name == OPEN else name
        cells = (kind, called, source, about) if added else (kind, called, about)
        table.add_row(*cells)
    out.print(table)
    for kind, name, *_ in rows:
        if name == wanted and isinstance(part := _part(kind, name), type):
            showing.show_options(part)
        if kind == "algorithms" and name == wanted:
            _print_chain(name)


def _part(kind: str, name: str) -> object:
    from ..parts.base import tag
    from ..parts.catalogue import parts

    return next((part for part in parts(kind) if tag(part) == name), None)


def _show_others(wanted: str) -> bool:
    """Shows what is in no table of parts, and says whether there is such a thing."""
    from ..scenario.shipped import shipped
    from . import showing

    known = showing.optimizers()
    if wanted in ("optimizer", "optimizers", "optimisers"):
        out.say(f"optimizers: {', '.join(known)}; each has stalesim list NAME")
        out.say("and all of optax by their names, with a learning_rate, such as adamw")
    elif wanted in known:
        showing.show_options(known[wanted])
    elif wanted in shipped():
        for line in showing.scenario(wanted):
            out.say(line)
    elif lines := showing.law_of_scipy(wanted):
        for line in lines:
            out.say(line)
    else:
        return False
    return True


def _print_chain(name: str) -> None:
    """Prints the stages of a method with usual options, if it is a chain."""
    from ..catalogue.algorithms.federated.chain import Chained, WrittenChain
    from ..parts.base import Part, tag
    from ..parts.catalogue import classes
    from ..scenario.dialect import dump

    (part,) = (p for p in classes("algorithms", Part) if tag(p) == name)
    if issubclass(part, Chained) and part is not WrittenChain:
        needed = {"step_size": 0.1, "batch": 16, "local_steps": 1}
        method = {"algorithm": _worded(part.model_validate(needed).opened())}
        out.print("\nIts chain of stages, with learning_rate 0.1 and batch_size 16:\n")
        out.print(dump(method), markup=False, highlight=False)


def _worded(tree: Any) -> Any:
    """Returns a part of a scenario with its keys in the words that pages have."""
    if isinstance(tree, list):
        return [*map(_worded, tree)]
    if isinstance(tree, dict):
        return {documented_key(key): _worded(value) for key, value in tree.items()}
    return tree


def _list_scenarios() -> None:
    from ..scenario.shipped import SHIPPED, shipped

    table = Table("scenario", "question", box=None)
    for name in shipped():
        text = (SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")
        question = re.search(r'^question: *"?(.*?)"?$', text, re.MULTILINE)
        table.add_row(name, question[1] if question else "")
    out.print(table)


def _list_worlds() -> None:
    """Prints the worlds by name; of recorded ones, where they are from."""
    from ..world.named import NAMED_WORLDS, RECORDED

    table = Table("world", "what it is", box=None)
    for name in NAMED_WORLDS:
        table.add_row(name, RECORDED.get(name, "of the theory"))
    out.print(table)


def _kinds(incomplete: str) -> list[str]:
    from . import new

    return [kind for kind in new.kinds() if kind.startswith(incomplete)]


@app.command("new", rich_help_panel="Scenarios")
def new_(
    kind: Annotated[
        str,
        typer.Argument(
            help="study, law, protocol, algorithm or model", autocompletion=_kinds
        ),
    ],
    name: Annotated[str, typer.Argument(help="Its name, a valid Python module name")],
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the files")
    ] = Path(),
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Shipped scenario to copy"),
    ] = None,
) -> None:
    """Create a scenario, or a component of your own with a test."""
    from . import new

    if source is not None:
        path = new.copy(kind, name, folder, source)
        out.say(f"Written: {path}")
        learns = "problem:" in path.read_text(encoding="utf-8")
        out.say(f"Next: stalesim {'run' if learns else 'timeline'} {path}")
        return
    paths = new.write(kind, name, folder)
    for path in paths:
        out.say(f"Written: {path}")
    (test,) = (path for path in paths if path.name.startswith("test_"))
    (file,) = (path for path in paths if path.suffix == ".yaml")
    parts = [path for path in paths if path.suffix == ".py" and path != test]
    learns = "problem:" in file.read_text(encoding="utf-8")
    called = " ".join(["stalesim", *(f"--plugin {path}" for path in parts)])
    out.say(f"Next: {called} {'run' if learns else 'timeline'} {file}")
    first = "" if find_spec("pytest") else "pip install pytest && "
    out.say(f"Test: {first}pytest {test}")


@app.command(rich_help_panel="Set-up")
def calibrate(
    *,
    epsilon: Annotated[float | None, typer.Option(help="Target, > 0")] = None,
    releases: Annotated[
        int | None, typer.Option(help="Number of messages of a client")
    ] = None,
    delta: Annotated[float, typer.Option(help="Delta of the guarantee")] = 1e-5,
    mechanism: Annotated[
        str, typer.Option(help="gaussian, laplace or spherical_laplace")
    ] = "gaussian",
    sampling_ratio: Annotated[
        float,
        typer.Option(help="Share of a client's samples in a batch"),
    ] = 1.0,
    sampling: Annotated[
        Literal["distinct", "poisson"], typer.Option(help="Draws of a batch")
    ] = "distinct",
    accountant: Annotated[
        str, typer.Option(help="Or basic, advanced, optimal, pld, gdp")
    ] = "rdp",
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Opacus history as JSON, in place of a target"
        ),
    ] = None,
) -> None:
    """Find the noise for a privacy budget, or epsilon of a history."""
    from ..privacy import budgets

    way: Any = "poisson" if history or sampling == "poisson" else "uniform"
    if history is not None:
        if epsilon is not None or releases is not None:
            raise UserError("--history must be without --epsilon and --releases")
        kinds = budgets.history(history)
    elif epsilon is None or releases is None:
        raise UserError("calibrate must have --epsilon and --releases, or --history")
    else:
        multiplier, release = budgets.calibrated(
            epsilon, delta, releases, mechanism, sampling_ratio, accountant, way
        )
        kinds = [(release, releases)]
        out.say(
            f"noise multiplier {multiplier:.6g}: scale of the {mechanism} noise over "
            f"the sensitivity, by {accountant}"
        )
        if release.is_pure:
            out.say(f"epsilon of a message: {release.pure_epsilon:.6g}")
    out.say(f"epsilon protects: {budgets.protects(sampling_ratio, way)}")
    heads = ["accountant", f"epsilon at delta {delta:g}", "proved"]
    heads += [f"within {epsilon:g}"] if epsilon else []
    table = Table(*heads, box=None)
    missing, proved = [], []
    for name, bound, formal in budgets.opinions(kinds, delta, accountant):
        if bound is None:
            missing.append(name)
            continue
        within = bound <= (epsilon or 0) * (1 + 1e-9)
        words = ["yes" if yes else "no" for yes in (formal, within)]
        words = [f"{bound:.4g}", *words][: len(table.columns) - 1]
        table.add_row(name, *(words if bound < float("inf") else ["unbounded"]))
        proved += [(bound, name)] * formal
    out.print(table)
    if missing:
        what = ", ".join(missing)
        out.say(f'not shown: {what}; pip install "stalesim[privacy]"')
    if proved:
        best, by = min(proved, key=itemgetter(0))
        out.say(f"Report one that is proved; the smallest is {best:.4g}, by {by}")


@app.command(rich_help_panel="Set-up")
def doctor(
    *,
    clear_cache: Annotated[
        bool,
        typer.Option(
            "--clear-cache",
            metavar="",
            help="Remove compiled programs, which are then compiled again",
        ),
    ] = False,
) -> None:
    """Show versions, devices, processors, memory and cache folder."""
    from . import diagnosis

    if clear_cache:
        diagnosis.clear_cache()
    else:
        diagnosis.show_machine()


@app.command(rich_help_panel="Scenarios")
def schema() -> None:
    """Print the JSON schema of scenarios, for editors."""
    from ..scenario.schema import schema as schema_of

    sys.stdout.write(json.dumps(schema_of(), indent=1) + "\n")
