"""The origins of a study: the files that it reads, modules of its plug-ins, libraries.

They stand in its manifest. A study goes on with the same ones alone, or its runs would
not be comparable. Files count by their content: for every run, also those that have
ended, before anything is executed. A module is code, as the libraries are, and can
change numbers as they can; so they count where something is still to be executed.
"""

from pathlib import Path
from typing import Any

from simulator import inputs
from simulator.config.errors import StudyError
from simulator.inputs import Inputs
from simulator.storage import files
from simulator.trace import provenance

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "simpy", "equinox", "stalesim")
SAME = ("stalesim", "jax", "jaxlib", "numpy")
"""Libraries that must not change within a study."""
SHORT = 12
"""Digits of a SHA-256 that a message shows."""


def told(read: Inputs, manifest: dict[str, Any]) -> dict[str, Any]:
    """Returns the entries of a manifest on the files and modules of a study.

    Args:
        read: Files and modules that the runs read now.
        manifest: Manifest of the study so far, if it was started before; its entries
            count where it has some.
    """
    found = inputs.told(read)
    for name in ("inputs", "modules"):
        found[name] |= manifest.get(name, {})
    started = manifest.get("working_folder", found["working_folder"])
    return {**found, "working_folder": started}


def check_files(folder: Path, manifest: dict[str, Any], read: Inputs) -> None:
    """Refuses files that do not hold what they held when the study was started.

    Raises:
        StudyError: one line with the file, what is wrong and the remedy.
    """
    known = manifest["inputs"]
    for name, now in read.named.items():
        then = known.get(name)
        if then is not None and then["sha256"] != now.sha256:
            raise StudyError(
                f"{folder}: must be continued with the files that it was started with, "
                f"but {now.at} has changed (its SHA-256 was {then['sha256'][:SHORT]}, "
                f"is {now.sha256[:SHORT]}); put back what it held, or choose another "
                f"folder by --out"
            )


def other_files(manifest: dict[str, Any], read: Inputs, scenario: Any) -> str:
    """Returns a file that a data set no longer finds, or finds in place of a stand-in.

    Args:
        manifest: Manifest of the study.
        read: Files that its runs read now.
        scenario: Scenario of a run that is not as it was.

    Returns:
        The end of a message; "" where that is not what differs.
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


def check_modules(folder: Path, manifest: dict[str, Any], read: Inputs) -> None:
    """Refuses modules whose code is not that with which the study was started.

    Raises:
        StudyError: one line with the module, what is wrong and the remedy.
    """
    known = manifest["modules"]
    for name, now in read.modules.items():
        then = known.get(name)
        if then is not None and then["sha256"] != now.sha256:
            raise StudyError(
                f"{folder}: must be continued with the module {name} with which it was "
                f"started, but {now.file} has changed since; put it back, or choose "
                f"another folder by --out"
            )


def check_libraries(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuses other libraries than those with which the study was started.

    Raises:
        StudyError: one line with the first that differs and the remedy.
    """
    here, then = of_this_program()["environment"], manifest["environment"]
    for name in SAME:
        if here.get(name) != then.get(name):
            raise StudyError(
                f"{folder}: must be continued with {name} {then.get(name)}, with which "
                f"it was started, got {here.get(name)}; install that, or choose "
                f"another folder by --out"
            )


def of_this_program() -> dict[str, Any]:
    """Returns the entries of a manifest on the program, its libraries, the machine."""
    import jax

    return provenance(
        LIBRARIES,
        device=str(jax.devices()[0].device_kind),
        backend=jax.default_backend(),
    )
