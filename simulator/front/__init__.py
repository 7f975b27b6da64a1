"""stalesim in one import: simulate, load, analyse, draw.

All public names of `simulator`, which simulates and reads studies, and of `analysis`,
which reads studies and runs nothing. Names are imported when they are used.
"""

from typing import TYPE_CHECKING

from stalesim.simulator.engine.device import before_import
from stalesim.simulator.parts.lazy import attach

if TYPE_CHECKING:
    from stalesim.analysis import *  # noqa: F403
    from stalesim.simulator import *  # noqa: F403
    from stalesim.simulator.parts.version import __version__

# A model of a user's own may compute before a study does, and JAX reads its flags once.
before_import()
__getattr__, __dir__, __all__ = attach(__name__, __file__)
