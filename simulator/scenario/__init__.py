"""Scenarios: what to simulate, read from YAML or built in Python.

- `reading`, `dialect`, `overrides`: a file and `-s` options to a `Scenario`, with the
  line of every mistake.
- `scenario`, `setting`: the entries of a study; `privacy`, `grid`: its accounts and its
  sweeps. Parts have their own packages, and so do claims and metrics.
- `study`: from a scenario to its runs, which its claims must be about (`claimed`);
  `tuning`: its searches; `schema`: its JSON schema.

The public names are imported when they are used. Nothing in here imports JAX or pandas,
and SciPy only when a law needs it.
"""

from typing import TYPE_CHECKING

from ..parts.lazy import attach

if TYPE_CHECKING:
    from ..parts.errors import DataError, ScenarioError, StudyError, UserError
    from ..parts.expressions import evaluate, per_client
    from .reading import loads, read, to_yaml
    from .scenario import Scenario
    from .schema import schema
    from .study import Run, expand

__getattr__, __dir__, __all__ = attach(__name__, __file__)
