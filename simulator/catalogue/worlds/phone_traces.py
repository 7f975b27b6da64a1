"""Availability of phones as others publish it: JSON, one record a phone.

Client k of the scenario is the k-th phone of the file. Every phone has its own period,
after which its trace begins again, as in the authors' programs.
"""

from abc import abstractmethod
from datetime import datetime
from math import inf
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from ...files.reading import files
from ...parts import json_text
from ...parts.base import FilePath
from ...parts.errors import DataError
from ...world.availability import Availability, TracedPresence
from ...world.laws.base import Population
from ...world.presence import Presence

PICKLE = b"\x80"
CONVERT = (
    "python -c \"import json, pickle; json.dump(pickle.load(open('IN', 'rb')), "
    "open('OUT.json', 'w'), default=float)\""
)


PhoneTrace = tuple[Float[np.ndarray, "_ 2"], float]
"""When a phone is available: starts and ends in order within its first period, and that
period, after which they come again; virtual seconds."""


class PhoneTraces(Availability):
    """Common base: a file with a record for each phone."""

    path: FilePath
    """JSON file, an object with an entry for each phone."""

    @abstractmethod
    def phone(self, record: dict[str, Any]) -> PhoneTrace:
        """Reads a record.

        Raises:
            KeyError, TypeError, ValueError: It is of another form.
        """

    def make(self, population: Population) -> Presence:
        path = files.located(self.path, "clients.availability.path")
        content = files.read(path)
        if content.startswith(PICKLE):
            raise DataError(
                f"{path} must be JSON, got a pickle, which may run any program when it "
                f"is read; convert it where you trust its source: {CONVERT}"
            )
        try:
            found = json_text.loads(content)
        except ValueError as error:
            raise DataError(f"{path} {error}; check that it is whole") from None
        records = list(found.items()) if isinstance(found, dict) else []
        first, last = population.first, population.first + population.size
        if len(records) < last:
            raise DataError(
                f"{path} must be an object of at least {last} phones, one for each "
                f"client, got {len(records)}; take fewer clients"
            )
        phones = []
        for name, record in records[first:last]:
            try:
                phones.append(_checked(self.phone(record)))
            except (KeyError, TypeError, ValueError) as error:
                why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
                raise DataError(
                    f"{path}: phone {name!r} {why[:120]}; correct or remove it"
                ) from None
        intervals, periods = ([*each] for each in zip(*phones, strict=True))
        return TracedPresence(intervals, first, periods)


class FedScaleTrace(PhoneTraces):
    """Phones of FedScale's `client_behave_trace`, converted to JSON.

    A record has `active` and `inactive`, seconds from which and to which the phone is
    available, and `finish_time`, after which its trace begins again.

    Source: FedScale, docs/trace.md, Device Trace File Formats, and `is_active` of its
    client simulator.
    """

    kind: Literal["fedscale"] = "fedscale"

    def phone(self, record: dict[str, Any]) -> PhoneTrace:
        active, inactive = record["active"], record["inactive"]
        if len(active) != len(inactive):
            raise ValueError(
                f"must have as many active as inactive times, got {len(active)} and "
                f"{len(inactive)}"
            )
        pairs = np.array([active, inactive], np.float64).T.reshape(-1, 2)
        return pairs, float(record["finish_time"])


class FlashTrace(PhoneTraces):
    """Phones of FLASH's `state_traces.json`: ready while locked, on Wi-Fi and charging.

    A record has `messages`, lines of a time, a tab and a state. Virtual time 0 is
    2020-01-02 00:00:00. Outside the phone's own window, from its first message to its
    last, its state is not known: the window repeats. A state that lasts until the end
    of the window counts for nothing, as with FLASH.

    Source: Yang et al., Characterizing Impacts of Heterogeneity in Federated Learning
    upon Large-Scale Smartphone Data (2021), by its authors' code (`Timer`).
    """

    kind: Literal["flash"] = "flash"

    def phone(self, record: dict[str, Any]) -> PhoneTrace:
        lines = [line for line in record["messages"].split("\n") if line.strip()]
        state = dict.fromkeys(("charging", "wifi", "locked"), False)
        found, since, times = [], None, []
        for line in lines:
            time, _, word = line.strip().partition("\t")
            stamp = datetime.strptime(time.strip(), FORMAT)  # noqa: DTZ007
            times.append((stamp - ZERO).total_seconds())
            word = word.strip().lower()
            if word in CHANGES:
                name, value = CHANGES[word]
                state[name] = value
            elif word not in ("screen_on", "screen_off") and not word.endswith("%"):
                raise ValueError(f"must have FLASH's states, got {word[:40]!r}")
            if all(state.values()):
                since = times[-1] if since is None else since
            elif since is not None:
                found.append((since, times[-1]))
                since = None
        if not times or times[-1] <= times[0]:
            raise ValueError("must have messages of more than one time")
        period = times[-1] - times[0]
        found = _joined(found, times[0], times[-1])
        return _turned(found, period), period


class FLHetBenchTrace(PhoneTraces):
    """Phones of FLHetBench's `cached_timers.json`: when they were ready to train.

    A record has `trace_start` and `trace_end`, seconds between which the phone's state
    is known: that window repeats. `ready_time` has pairs of a start and an end, and
    `isSuccess` is false of a phone that is never ready.

    Source: Zhang et al., FLHetBench: Benchmarking Device and State Heterogeneity in
    Federated Learning (2024), by its authors' code (`Timer`).
    """

    kind: Literal["flhetbench"] = "flhetbench"

    def phone(self, record: dict[str, Any]) -> PhoneTrace:
        if not record["isSuccess"]:
            return np.empty((0, 2)), 1.0  # any period without an interval
        start, end = float(record["trace_start"]), float(record["trace_end"])
        ready = [(float(early), float(late)) for early, late in record["ready_time"]]
        if any(not start <= early <= late <= end for early, late in ready):
            raise ValueError("must have ready_time from trace_start to trace_end")
        period = end - start
        return _turned(_joined(ready, start, end), period), period


FORMAT = "%Y-%m-%d %H:%M:%S"
ZERO = datetime(2020, 1, 2)  # noqa: DTZ001 - the phones' own clocks, without a zone
CHANGES = {
    "battery_charged_on": ("charging", True),
    "battery_charged_off": ("charging", False),
    "wifi": ("wifi", True),
    **dict.fromkeys(("unknown", "2g", "3g", "4g"), ("wifi", False)),
    "screen_lock": ("locked", True),
    "screen_unlock": ("locked", False),
}
"""States of FLASH, and what they change."""


def _joined(
    intervals: list[tuple[float, float]], first: float, last: float
) -> list[tuple[float, float]]:
    """Returns what lies within a window, apart: messages may be out of order."""
    found: list[tuple[float, float]] = []
    for early, late in sorted(intervals):
        early, late = max(early, first), min(late, last)
        if found and early <= found[-1][1]:
            found[-1] = (found[-1][0], max(late, found[-1][1]))
        elif early < late:
            found.append((early, late))
    return found


def _turned(
    intervals: list[tuple[float, float]], period: float
) -> Float[np.ndarray, "_ 2"]:
    """Returns what a window that repeats has from 0 to its period: any turn of it."""
    found = []
    for early, late in intervals:
        first, last = early % period, early % period + late - early
        found.append((first, min(last, period)))
        if last > period:
            found.append((0.0, last - period))
    return np.array(sorted(found), np.float64).reshape(-1, 2)


def _checked(phone: PhoneTrace) -> PhoneTrace:
    ends, period = phone
    ends = ends[ends[:, 0] != ends[:, 1]]
    flat = ends.ravel()
    if not 0 < period < inf:
        raise ValueError(f"must have a period above 0 s, got {period:g}")
    if not np.isfinite(flat).all() or (np.diff(flat) < 0).any():
        raise ValueError(
            "must have times that rise, each interval after the one before"
        )
    if flat.size and (flat[0] < 0 or flat[-1] > period):
        raise ValueError(f"must have times from 0 to its period of {period:g} s")
    return ends, period
