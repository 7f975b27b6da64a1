"""The command line: `stalesim run|timeline|plot|check|list|calibrate`, ...

`commands` is the program; its commands are in `runs`, `results`, `tools` and `data`.
`console` has its output and interruptions, `printing` shows results. The public names
are imported when they are used: commands of extras import these modules.
"""

from typing import TYPE_CHECKING

from ..parts.lazy import attach

if TYPE_CHECKING:
    from .commands import app, main

__getattr__, __dir__, __all__ = attach(__name__, __file__)
