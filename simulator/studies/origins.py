"""The origins of a study: files that it reads, plug-ins, this program, its libraries.

They are in its manifest. A study is continued with the same ones alone, or its runs
would not be comparable. Files count by their content: for every run, also those that
have ended, before anything is executed. Modules, this program and the libraries are
code, which can change numbers; they count if any run is left to execute.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..engine.device import products
from ..files import inputs
from ..files.inputs import Inputs
from ..files.reading import files
from ..files.study import program, provenance
from ..files.study.manifest import Manifest, Provenance
from ..parts.base import Config
from ..parts.errors import StudyError
from ..parts.json_text import Tree
from ..parts.own_code import Content

LIBRARIES = (
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "equinox",
    "optax",
    "simpy",
    "pandas",
    "pyarrow",
    "dp-accounting",
    "scikit-learn",
    "mlxtend",
    "stalesim",
)
"""Libraries that numbers pass through, and that must not change within a study."""
CODE = "code"
"""Entry of the environment that has the digest of this program's own code."""
ELSEWHERE = "choose another folder by --out, or replace the study by --overwrite"
SHORT = 12
"""Digits of a SHA-256 that a message shows."""


def check_files(folder: Path, manifest: Manifest, read: Inputs) -> None:
    """Refuses files whose content has changed since the study was started."""
    known = manifest["inputs"]
    for name, now in read.named.items():
        then = known.get(name)
        if then is not None and then["sha256"] != now.sha256:
            at, was, is_now = _import(then, now) or (now.at, then["sha256"], now.sha256)
            raise StudyError(
                f"{folder}: must be continued with the files that it was started "
                f"with, but {at} has changed (its SHA-256 was {was[:SHORT]}, is "
                f"{is_now[:SHORT]}); restore its content, or choose another folder by "
                "--out"
            )


def other_files(manifest: Manifest, read: Inputs, scenario: Config | None) -> str:
    """Returns a file that a data set no longer finds, or finds now and did not then.

    Returns:
        The end of a message; "" where this does not differ.
    """
    found = inputs.finds(scenario, read)
    if found is None:
        return ""
    known = manifest.get("inputs", {})
    gone = [name for name in known if name.startswith(inputs.IN_DATA)]
    for name in sorted({*gone} - read.named.keys()):
        return (
            f"{known[name]['at']} was read when it was started and is not found now; "
            f"put it there, or set {files.FOLDER} to its folder"
        )
    for name in sorted({*found} - known.keys()):
        return (
            f"{read.named[name].at} is found now and was not when it was started; set "
            f"{files.FOLDER} to another folder, or choose another one by --out"
        )
    return ""


def check_modules(folder: Path, manifest: Manifest, read: Inputs) -> None:
    """Refuses modules whose code is not that with which the study was started."""
    known = manifest["modules"]
    for name, now in read.modules.items():
        then = known.get(name)
        if then is None:
            continue
        other = _import(then, now)
        if then["sha256"] != now.sha256 or other:
            file = now.at if other is None else other[0]
            raise StudyError(
                f"{folder}: must be continued with the module {name} with which it was "
                f"started, but {file} has changed since; put it back, or {ELSEWHERE}"
            )


def _import(then: Tree, now: Content) -> tuple[str, str, str] | None:
    """Returns a module that own code imports and that has changed.

    Returns:
        Its file, and its SHA-256 then and now.
    """
    known = then.get("imports", {})
    for name in sorted({*known} | {*now.imports}):
        was, is_now = (each.get(name, ("", "none")) for each in (known, now.imports))
        if was[1] != is_now[1]:
            return is_now[0] or was[0], was[1], is_now[1]
    return None


def check_program(folder: Path, manifest: Manifest, read: Inputs) -> None:
    """Refuses another program, or other libraries, than the study was started with."""
    made, here = manifest["environment"], of_this_program(read.libraries)
    now = here["environment"]
    for name in (*LIBRARIES, *read.libraries):
        # What was not installed then, no run has used.
        if made.get(name) not in (None, now.get(name)):
            raise StudyError(
                f"{folder}: must be continued with {name} {made[name]}, with which it "
                f"was started, got {now.get(name)}; install that, or {ELSEWHERE}"
            )
    if made.get(CODE) != now.get(CODE):
        commit, number = manifest.get("commit"), made.get(CODE)
        back = f"go back to commit {commit[:SHORT]}" if commit else "install that again"
        if manifest.get("dirty"):
            back += " and its local changes"
        raise StudyError(
            f"{folder}: must be continued by the program that started it, but the code "
            f"of simulator/ has changed (its digest was {number}, is {now.get(CODE)}); "
            f"{back}, or {ELSEWHERE}"
        )


def check_worker(planned: Mapping[str, str | None]) -> None:
    """Refuses to execute runs by another program than the one that planned them.

    Args:
        planned: `Task.program`; nothing if any program may.
    """
    here = program(tuple(name for name in planned if name != CODE))
    for name, was in planned.items():
        if here[name] != was:
            what = "the digest of its simulator/" if name == CODE else f"its {name}"
            worker = f"{socket.gethostname()}, process {os.getpid()}"
            raise StudyError(
                f"worker {worker}: must have the program that planned the runs, but "
                f"{what} is {here[name]}, not {was}; start it again with that program, "
                f"then resume the study"
            )


def of_this_program(also: Sequence[str] = ()) -> Provenance:
    """Returns the entries of a manifest on the program, its libraries, the machine."""
    import jax

    return provenance(
        (*LIBRARIES, *also),
        device=str(jax.devices()[0].device_kind),
        backend=jax.default_backend(),
        products=products(),
    )
