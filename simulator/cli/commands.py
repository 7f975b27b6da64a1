"""The program `stalesim`: its commands, and how it ends."""

import atexit
import gc
import re
import signal
import sys
import threading
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer

from ..parts.attached import extras
from ..parts.errors import UserError, shown
from . import console, data, results, runs, tools, tuning
from .console import err, out

app = typer.Typer(
    help="Simulate asynchronous and federated learning in virtual time.\n\n"
    "Start with: stalesim run quickstart",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

app.add_typer(runs.app)
app.add_typer(tuning.app)
app.add_typer(results.app)
app.add_typer(tools.app)
app.add_typer(data.app, name="data", rich_help_panel="Scenarios")
for extra in extras().values():
    if extra.commands:
        app.add_typer(import_module(extra.commands).app)

SAID = {
    r"Input should be a valid integer.*": "must be a whole number, such as 2",
    r"Input should be a valid number.*": "must be a number, such as 0.5",
}
"""Words of a library on the values of options, and ours."""
USER_ERROR = 2
"""Exit status of a user's mistake."""


def main() -> None:
    """Runs the command line; a user's mistake is a line and exit status 2."""
    atexit.register(gc.freeze)  # searching all objects for garbage takes 0.6 s at exit
    console.accept_any_text()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, console.interrupt)
    sys.unraisablehook = console.repeat_interruption
    threading.excepthook = console.forget_after_interruption
    warnings.showwarning = console.warn
    try:
        _check_arguments(sys.argv[1:])
        status = _executed()
        if status == console.INTERRUPTED:  # Typer's; a command that writes says more
            raise KeyboardInterrupt
    except UserError as error:
        for number, line in enumerate(error.lines):
            err.say(line if number else f"stalesim: {line}", style="red")
        raise SystemExit(USER_ERROR) from None
    except KeyboardInterrupt:
        err.say("stalesim: interrupted", style="red")
        raise SystemExit(console.INTERRUPTED) from None
    if status:
        raise SystemExit(status)


def _executed() -> int:
    try:
        # Else Typer writes a box of several lines.
        status = app(standalone_mode=False)
    except Exception as error:  # Typer's errors have no class of their own that lasts
        said = getattr(error, "format_message", lambda: None)()
        if said is None:
            raise
        if not said.strip():  # help was asked for by giving no arguments
            return USER_ERROR
        command: Any = getattr(error, "ctx", None)
        of = f"; see {command.command_path} --help" if command else ""
        told = said.strip().rstrip(".")
        for theirs, ours in SAID.items():
            told = re.sub(theirs, ours, told)
        raise UserError(f"{told}{of}{_as_entry(told)}") from None
    return status if isinstance(status, int) else 0


def _as_entry(told: str) -> str:
    """Returns how an option that does not exist is set as an entry; "" if it is none.

    Args:
        told: What Typer says of it.
    """
    option = re.match(r"No such option: --([a-z_-]+)", told)
    if option is None:
        return ""
    from ..scenario.scenario import Scenario

    key = option[1].replace("-", "_")
    if key not in Scenario.model_fields:
        return ""
    return f"; an entry is set by -s {key}=VALUE"


def _check_arguments(arguments: list[str]) -> None:
    """Refuses names that are no text: tables and pages could not be written so."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"arguments must be UTF-8, got {shown(argument)}; rename the file or "
                f"folder"
            ) from None


def _show_version(asked: bool) -> None:
    if asked:
        from . import diagnosis

        out.say(f"stalesim {diagnosis.version_of('stalesim')}")
        raise typer.Exit


@app.callback()
def register(
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            help="Load components of your own",
        ),
    ] = None,
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            metavar="",
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Imports the modules with plug-ins, before anything is read."""
    if modules:
        from ..engine import device
        from ..parts import catalogue

        device.before_import()
        catalogue.register(*modules)
