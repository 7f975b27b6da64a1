"""The command line: `stalesim run|timeline|plot|check|attack|list|calibrate`, ...

`commands` holds the commands, `console` the output and interruptions of the program;
`printing` shows results.
"""

from simulator.cli.commands import app, main

__all__ = ["app", "main"]
