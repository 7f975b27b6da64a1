"""The command line: `stalesim run|timeline|plot|check|attack|list|calibrate`, ...

`commands` is the program; its commands stand in `runs`, `results`, `tools` and `data`.
`console` has its output and interruptions, `printing` shows results.
"""

from .commands import app, main

__all__ = ["app", "main"]
