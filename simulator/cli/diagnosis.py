"""Description of this machine: versions, devices, processors, memory."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from ..parts.errors import UserError
from .console import out

LIBRARIES = ("jax", "numpy", "scipy", "pandas", "simpy", "pydantic")
MISSING = "not installed"


def show_machine() -> None:
    """Shows versions, devices, processors, memory and the cache folder."""
    from ..files.cache import cache_folder

    rows = {
        "stalesim": version_of("stalesim"),
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{name: version_of(name) for name in LIBRARIES},
        "devices": _devices(),
        "double precision": _double_precision(),
        "processors": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "memory": _memory(),
        "cache": str(cache_folder() or "none: STALESIM_CACHE is off"),
    }
    width = max(map(len, rows)) + 2
    for name, value in rows.items():
        out.say(f"{name:{width}}{value}")


def clear_cache() -> None:
    """Removes the compiled programs that are kept, and says how many bytes they had."""
    from ..files import cache

    removed = cache.shorten(0) / 2**20
    where = cache.programs() or "STALESIM_CACHE is off"
    out.say(f"Removed {removed:.1f} MiB of compiled programs: {where}")


def version_of(name: str) -> str:
    """Returns the version of an installed package, or that it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING


def _devices() -> str:
    """Returns the devices that numerics may run on, or why there are none."""
    from ..engine import device

    device.before_import()
    import jax

    try:
        return ", ".join(f"{found} ({found.device_kind})" for found in jax.devices())
    except RuntimeError as error:
        return f"none: {str(error).splitlines()[0]}"


def _double_precision() -> str:
    """Returns whether runs in double precision are compiled rightly here."""
    from ..engine import compiler

    try:
        compiler.check("float64")
    except UserError as error:
        return f"compiled wrongly: {error}"
    except RuntimeError:  # said of the devices
        return "not known"
    return "compiled rightly"


def _memory() -> str:
    pages = {"SC_PHYS_PAGES": "in all", "SC_AVPHYS_PAGES": "free"}
    known = {name: what for name, what in pages.items() if name in os.sysconf_names}
    page = os.sysconf("SC_PAGE_SIZE") / 2**30
    return ", ".join(
        f"{os.sysconf(name) * page:.1f} GiB {what}" for name, what in known.items()
    )
