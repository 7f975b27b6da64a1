"""stalesim: what asynchrony and staleness do to learning, simulated.

The public names, imported only when they are used: importing this package imports
neither JAX nor pandas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.config.catalogue import register
    from simulator.scenario.reading import read
    from simulator.scenario.scenario import Scenario
    from simulator.studies import resume, simulate, sweep
    from simulator.trace import Study, load

_PUBLIC = {
    "Scenario": "simulator.scenario.scenario",
    "Study": "simulator.trace",
    "load": "simulator.trace",
    "read": "simulator.scenario.reading",
    "register": "simulator.config.catalogue",
    "resume": "simulator.studies",
    "simulate": "simulator.studies",
    "sweep": "simulator.studies",
}

__all__ = [
    "Scenario",
    "Study",
    "load",
    "read",
    "register",
    "resume",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
