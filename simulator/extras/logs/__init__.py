"""Logs of real systems: imported as timelines, and fitted by worlds to play.

For those who have measured a system and ask what another protocol would make of it.

- `reading`: the columns of a log, and what is refused.
- `timelines`: the timeline of a log, which a scenario replays.
- `worlds`: a world fitted to a log, with factors that all clients (`shared`) or some of
  them (`rooms`) have in common; `page` shows how good the fits are.
- `commands`: `stalesim log import|fit|play`.
"""

from ...parts.attached import Extra

EXTRA = Extra(commands=f"{__name__}.commands")
