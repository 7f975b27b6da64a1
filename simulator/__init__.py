"""stalesim: what asynchrony and staleness do to learning, simulated.

The public names, imported only when they are used: importing this package imports
neither JAX nor pandas.
"""

from typing import TYPE_CHECKING

from .parts.lazy import attach

if TYPE_CHECKING:
    from .files.study import Study, load
    from .parts.catalogue import register
    from .parts.errors import UserError
    from .scenario.reading import read
    from .scenario.scenario import Scenario
    from .studies import compare, resume, simulate, tune

__getattr__, __dir__, __all__ = attach(__name__, __file__)
