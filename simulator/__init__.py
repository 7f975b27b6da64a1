"""stalesim: what asynchrony and staleness do to learning, simulated.

The public names, imported only when they are used: importing this package imports
neither JAX nor pandas.
"""

from typing import TYPE_CHECKING

from .lazy import attach

if TYPE_CHECKING:
    from .config.catalogue import register
    from .scenario.reading import read
    from .scenario.scenario import Scenario
    from .studies import compare, resume, simulate, sweep, tune
    from .trace import Study, load

__getattr__, __dir__, __all__ = attach(__name__, __file__)
