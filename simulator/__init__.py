"""stalesim: what asynchrony and staleness do to learning, simulated.

The public names, imported only when they are used: importing this package imports
neither JAX nor pandas.
"""

from typing import TYPE_CHECKING

from simulator.lazy import attach

if TYPE_CHECKING:
    from simulator.config.catalogue import register
    from simulator.scenario.reading import read
    from simulator.scenario.scenario import Scenario
    from simulator.studies import resume, simulate, sweep, tune
    from simulator.trace import Study, load

__getattr__, __dir__, __all__ = attach(__name__, __file__)
