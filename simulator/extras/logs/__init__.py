"""Logs of real systems: imported as timelines, and fitted by worlds to play.

For users who have measured a system and want to simulate it with another protocol.

- `reading`: the columns of a log, and its checks.
- `timelines`: the timeline of a log, which a scenario replays.
- `worlds`: a world fitted to a log, with factors that all clients (`shared`) or some of
  them (`rooms`) have in common; `page` shows how good the fits are.
- `commands`: `stalesim log import|fit|play`.
"""

from ...parts.attached import Extra

EXTRA = Extra(commands=f"{__name__}.commands")
