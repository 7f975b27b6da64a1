"""Says why a run ended, and since when it had stood still if it had."""

from typing import Any

from ..timeline import SINCE, TIMED, Chunk, Incident, StopReason, effects


class Ending:
    """What a timeline's chunks say of its end.

    Args:
        num_clients: Clients that take part.
        least: Clients without which there is no further commit.
    """

    def __init__(self, num_clients: int, least: int) -> None:
        self._num_clients, self._least = num_clients, least
        self._last, self._gone = 0.0, set[int]()
        self._at_rest: int | None = None

    def add(self, chunk: Chunk) -> None:
        """Takes up the next chunk."""
        made = chunk.rows.time[effects(chunk.rows.kind).commits]
        if made.size:
            self._last = float(made[-1])
        left = chunk.incidents.incident == Incident.LEFT
        self._gone.update(chunk.incidents.client[left].tolist())
        self._at_rest = chunk.gone

    def words(self, stop: StopReason) -> str:
        """Returns why the run ended."""
        here = self._num_clients - max(len(self._gone), self._at_rest or 0)
        lacks, stalled = here < self._least, stop is StopReason.STALLED
        rests = stalled or self._at_rest is not None
        if not (lacks or rests) or not (stalled or stop in TIMED):
            return stop.value
        since = f"{SINCE} {self._last:.4g} s"
        left = f"{here} of {self._num_clients} clients are left"
        if not lacks:
            return f"{since}, and nothing more could happen: {left}"
        awaited = f", {self._least} are waited for" if self._least > 1 else ""
        return f"{since}: {left}{awaited}"

    def state(self) -> list[Any]:
        """Returns what the rest of the run adds to."""
        return [self._last, sorted(self._gone)]

    def restore(self, state: list[Any]) -> None:
        """Takes up what `state` has returned."""
        self._last, self._gone = state[0], set(state[1])
