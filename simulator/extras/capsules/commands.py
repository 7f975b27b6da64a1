"""Commands that pack a study and repeat one: `capsule` and `rerun`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli import console, folders
from ...cli.console import err, out
from ...cli.runs import Folder, Jobs, recorder_of
from ...parts.errors import UserError, counted

if TYPE_CHECKING:
    from . import Capsule, Repetition

app = typer.Typer()

DIFFERENT = 1
"""Exit status of a repetition with other verdicts."""
SHOWN = 3
"""Runs that are named."""


@app.command(rich_help_panel="Share")
def capsule(
    folder: Annotated[Path, typer.Argument(help="Folder of a study or timeline")],
    file: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Default: FOLDER/capsule.zip"),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            metavar="SPDX",
            help="Licence of scenario and results, as CC-BY-4.0",
        ),
    ] = None,
    *,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous", metavar="", help="Leave out what identifies its authors"
        ),
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name that is no author's (repeatable)",
        ),
    ] = None,
) -> None:
    """Pack a study into one file (a zip) that others can repeat.

    It contains the scenario, results, verdicts, digests of all traces,
    versions, figures and your own code. It contains the names, licences and
    checksums of data, not the data.

    --anonymous leaves out commit, command, folders and PDF figures. It refuses
    names, hosts, e-mail, folders and repositories, except --allow NAME.
    """
    from ...files import study as trace
    from . import packing

    path = packing.write(
        trace.load(folder), file, licence, anonymous=anonymous, allowed=allow or ()
    )
    out.say(f"Capsule: {path}")
    if anonymous:
        out.say(
            "Left out: commit, command, folders; figures that are PDF or have no "
            "caption. Not known, so not searched for: institute, project, co-authors"
        )
    packed = packing.read(path)
    code = " --run-code" if packed.modules else ""
    out.say(f"To repeat it: stalesim rerun {path}{code}")
    if packed.left_out:
        out.say(f"Read by it, and not inside: {', '.join(packed.left_out)}")
    if licence is None:
        out.say("It states no licence of scenario and results; --licence states one")


@app.command(rich_help_panel="Share")
def rerun(
    file: Annotated[Path, typer.Argument(help="A capsule (.zip)")],
    folder: Folder = None,
    jobs: Jobs = 0,
    *,
    run_code: Annotated[
        bool,
        typer.Option("--run-code", metavar="", help="Execute the author's code in it"),
    ] = False,
) -> None:
    """Repeat the study of a capsule and compare the verdicts.

    Exits with 1 if a verdict differs; without claims, if a trace differs.
    """
    from ...files.study import is_world
    from ...scenario.reading import loads, loads_any
    from . import packing

    packed = packing.read(file)
    if packed.modules and not run_code:
        raise UserError(
            f"{file} holds code that would be executed ({', '.join(packed.modules)}); "
            f"read it, then add --run-code"
        )
    folder = folder or folders.new(f"{packed.manifest['name']}-again")
    _register(packed, folder)
    is_played = is_world(packed.manifest)
    text, name = packed.files["scenario.yaml"].decode(), f"{file}:scenario.yaml"
    scenario = loads_any(text, name) if is_played else loads(text, name)
    with console.interruptible(folder), console.progress(scenario.name) as hear:
        if is_played:
            study = recorder_of(scenario)(scenario, folder, hear)
        else:
            from ... import studies

            study = studies.simulate(scenario, folder, jobs=jobs, progress=hear)
    found = packing.compare(packed, study)
    _show(found)
    out.say(f"Study: {folder}")
    if not found.same:
        raise SystemExit(DIFFERENT)


def _register(packed: "Capsule", folder: Path) -> None:
    if not packed.modules:
        return
    from ...engine import device
    from ...parts import catalogue

    place = folder.with_name(f"{folder.name}-code")
    paths = []
    for name in packed.modules:
        path = place / Path(name).name
        place.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed.files[name])
        if name in packed.named:
            paths.append(path)  # their imports are in the same folder
    device.before_import()
    catalogue.register(*paths)


def _show(found: "Repetition") -> None:
    for name, (then, now) in found.environment.items():
        out.say(f"{name} was {then}, is {now}")
    for name in found.inputs:
        err.say(f"{name} does not hold what it held", style="yellow")
    same = found.same_runs == found.runs
    what = f"traces: {found.same_runs} of {counted(found.runs, 'run')} equal to the bit"
    if not same:
        others = ", ".join(found.other_runs[:SHOWN])
        rest = len(found.other_runs) - SHOWN
        what += f"; not {others}" + (f" and {rest} more" if rest > 0 else "")
        if found.environment:
            what += "; machines and libraries may differ in last digits"
    out.say(what, style="green" if same else "yellow")
    rows = found.verdicts.itertuples(index=False)
    for claim, then, now in rows:
        if then != now:
            err.say(f"{claim}: {then} then, {now} now", style="red")
    number = counted(len(found.verdicts), "verdict")
    if found.verdicts.empty:
        return
    if found.same_verdicts:
        out.say(f"the same verdicts: {number}", style="green")
    else:
        other = int((found.verdicts["then"] != found.verdicts["now"]).sum())
        err.say(f"other verdicts: {other} of {number}", style="red")
