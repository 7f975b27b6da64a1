"""The command line: `stalesim run|timeline|plot|check|attack|list|calibrate`, ...

`commands` says what a user can ask for and `console` how the program hears and is
interrupted; `printing` shows what came out.
"""

from simulator.cli.commands import app, main

__all__ = ["app", "main"]
