"""The devices of this machine, and the cost of encryption on it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from rich.table import Table

from ..config.errors import UserError
from .console import out

if TYPE_CHECKING:
    from ..privacy.encryption import Costs

LIBRARIES = ("jax", "numpy", "scipy", "pandas", "simpy", "pydantic", "tenseal")
MISSING = "not installed"


def show_machine() -> None:
    """Shows versions, devices, processors, memory and the cache folder."""
    from ..storage.cache import cache_folder

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


def show_encryption() -> None:
    """Measures CKKS; shows its costs next to the defaults, and as part of a scenario.

    Raises:
        UserError: TenSEAL is not installed.
    """
    from ..privacy.encryption import Ckks, Costs
    from ..privacy.encryption_costs import measure

    found = measure()
    table = Table("CKKS, one ciphertext", "default", "here", box=None, pad_edge=False)
    for name, default, here in zip(Costs._fields, Ckks().costs, found, strict=True):
        table.add_row(name, _number(default), _number(here))
    out.print(table)
    out.print("\nFor a scenario:\n")
    out.print(snippet(found), soft_wrap=True)


def snippet(costs: "Costs") -> str:
    """Returns the lines of a scenario that put measured costs in place of defaults."""
    lines = (f"    {name}: {_number(value)}" for name, value in costs._asdict().items())
    return "\n".join(("algorithm:", "  encryption:", "    kind: ckks", *lines))


def _number(value: float) -> str:
    """Returns a number as YAML reads it: a float has a point and a signed exponent."""
    return str(value) if isinstance(value, int) else f"{value:.2e}"


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
