"""What to simulate: the scenario, read from YAML or built in Python.

- `reading`, `dialect`, `overrides`: a file and `-s` options to a `Scenario`, with the
  line of every mistake; `suggestions` words the message.
- `scenario` and the parts that it is made of: `problems`, `laws`, `protocols`,
  `algorithms`; `catalogue` lists them.
- `expressions`: arithmetic in `m` and `M`; `law_checks`: laws that cannot be durations.
- `study`: a scenario to its runs, its JSON schema, and back to YAML.

The public names are imported when they are used. Nothing in here imports JAX or pandas,
and SciPy only when a law needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.config.errors import (
        DataError,
        ScenarioError,
        StudyError,
        UserError,
    )
    from simulator.config.expressions import evaluate, per_client
    from simulator.scenario.reading import loads, read
    from simulator.scenario.scenario import Scenario
    from simulator.scenario.study import Run, expand, schema, to_yaml

_PUBLIC = {
    "DataError": "simulator.config.errors",
    "Run": "simulator.scenario.study",
    "Scenario": "simulator.scenario.scenario",
    "ScenarioError": "simulator.config.errors",
    "StudyError": "simulator.config.errors",
    "UserError": "simulator.config.errors",
    "evaluate": "simulator.config.expressions",
    "expand": "simulator.scenario.study",
    "loads": "simulator.scenario.reading",
    "per_client": "simulator.config.expressions",
    "read": "simulator.scenario.reading",
    "schema": "simulator.scenario.study",
    "to_yaml": "simulator.scenario.study",
}

__all__ = [
    "DataError",
    "Run",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "UserError",
    "evaluate",
    "expand",
    "loads",
    "per_client",
    "read",
    "schema",
    "to_yaml",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
