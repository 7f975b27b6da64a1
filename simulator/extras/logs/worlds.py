"""A world from a log of jobs: laws of each client's stages, which `rooms` fits.

Stages follow from the log's times: `download` (begun_time), `compute`, `upload`
(computed_time or sent_time), and `idle`, the pauses of an asynchronous server's clients
from an arrival to their next read. Each client is one group.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...catalogue.laws.choosing import Series, SeriesFit
from ...catalogue.laws.fitting import fit_law, six
from ...files import inputs
from ...files.study import DISK, Study
from ...files.study.disk import explained, replace
from ...files.study.manifest import NAME
from ...files.timeline import Outcome
from ...parts.errors import DataError, UserError, shown
from ...scenario import dialect, overrides
from ...scenario.reading import read_any, validated_as
from ...scenario.setting import WorldScenario
from ...scenario.study import expand, is_same
from ...scenario.synonyms import Synonyms
from ...studies.saved import Progress, emptied, sources_of, write_held
from .reading import ClientLog, leaving, read_log, who_leaves
from .rooms import fit_together
from .shared import Entry
from .timelines import source_of

MOST_CLIENTS = 10_000
"""Clients of a log that is fitted: each is a group, which takes some milliseconds."""
DIGITS = 9
"""Decimals of seconds to which differences of times are rounded."""
ENTRIES = {
    "download": lambda law: {"download": {"latency": law}},
    "compute": lambda law: {"compute": law},
    "upload": lambda law: {"upload": {"latency": law}},
    "idle": lambda law: {"idle": law},
}
"""Entries of a group by the stage that a law is of."""
SHARED = ("download", "compute", "upload")
"""Stages that clients may share a factor of."""


Fits = dict[str, dict[str, SeriesFit]]
"""The fits, by stage and client."""


class FittedWorld(NamedTuple):
    """The world made from a log.

    Attributes:
        tree: A scenario of a world.
        fits: The fits.
        remarks: Differences of the world from the log, each in a line.
        tables: Columns that the scenario reads, by files.
        rooms: Which clients are slow together, each room in a line.
    """

    tree: Entry
    fits: Fits
    remarks: list[str]
    tables: dict[Path, dict[str, np.ndarray]]
    rooms: list[str]


def world_of(log: ClientLog, stem: Path) -> FittedWorld:
    """Fits a world to a log.

    Raises:
        DataError: The log has no times, or too many clients for a group of each.
    """
    if log.in_commits:
        raise DataError(
            f"{log.path}: must have times to be fitted, but has an order of commits "
            f"alone; import and replay it, or add read_time and arrived_time"
        )
    number = len(log.labels)
    if number > MOST_CLIENTS:
        raise DataError(
            f"{log.path}: must have at most {MOST_CLIENTS:,} clients to be fitted, as "
            f"each becomes a group of the scenario, got {number:,}; take a sample of "
            f"them"
        )
    groups = {name: {"number": 1} for name in _names(log.labels)}
    fits: Fits = {}
    remarks, tables, slowdowns, rooms = _remarks(log), {}, [], []
    names = list(groups)
    for stage, every in _stages(log).items():
        path = stem.with_name(f"{stem.name}.{stage}.parquet")
        own = {"law": "empirical", "path": str(path), "column": "seconds"}
        measured = [{**own, "client": "client", "order": "resample"}] * len(groups)
        if stage == "idle":
            every, zeros = _pauses(every)
            pairs = zip(every, measured, strict=True)
            found = [_of_pauses(*pair, len(every)) for pair in pairs]
            shared, in_rooms = None, []
        else:
            zeros = [0.0] * len(every)
            factors = {"law": "empirical", "column": "factor", "order": "resample"}
            of_rooms = [
                {**factors, "path": str(_room_path(path, number))}
                for number in range(1, len(every))
            ]
            found, shared, in_rooms = fit_together(
                every, measured, of_rooms, 10.0**-DIGITS
            )
        for name, fit, zero in zip(groups, found, zeros, strict=True):
            law = fit.law
            if zero:
                still = {"law": "constant", "value": 0}
                weights = [six(zero), six(1 - zero)]
                law = {"law": "mixture", "of": [still, law], "weights": weights}
            if zero < 1:
                groups[name] |= ENTRIES[stage](law)
                fits.setdefault(stage, {})[name] = fit
        if shared is not None and stage in SHARED:
            slowdowns.append({**shared, "stages": [stage]})
        for number, (room, slowdown, values) in enumerate(in_rooms, 1):
            slowdowns.append({**slowdown, "stages": [stage]})
            if (file := str(_room_path(path, number))) in json.dumps(slowdown):
                tables[Path(file)] = {"factor": values}
            who = ", ".join(names[client] for client in room.clients)
            rooms.append(
                f"{stage}: {who} are slow together, correlation {room.correlation:.2f} "
                f"of what is new to each (p = {room.p:.2g})"
            )
        kept = [i for i, fit in enumerate(found) if str(path) in json.dumps(fit.law)]
        if kept:
            sizes = [found[i].values.size for i in kept]
            tables[path] = {
                "client": np.repeat(np.array(kept) + 1, sizes),
                "seconds": np.concatenate([found[i].values for i in kept]),
            }
    tree: Entry = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "-", log.path.stem).lstrip("._-") or "log",
        "source": f"fitted to {log.path.name}",
        "clients": {"groups": groups},
        "protocol": log.protocol.model_dump(mode="json", exclude_defaults=True)
        | {"kind": log.protocol.kind},
        "stop": {"time": six(log.times["arrived_time"].max())},
    }
    if slowdowns:
        tree["clients"]["slowdowns"] = slowdowns
    size = _buffer(log)
    if size > 1:
        tree["protocol"] = {"kind": "buffered", "size": size}
    return FittedWorld(tree, fits, remarks, tables, rooms)


def with_leaving(world: FittedWorld, log: ClientLog) -> FittedWorld:
    """Returns a world that clients leave as they do its log, with a remark on them.

    A server of rounds would wait for them for ever, so that they stay in its world.
    """
    gone, who = leaving(log)[1], who_leaves(log)
    if not who:
        return world
    then = "they leave the world, too; to keep one, remove leave from its group"
    if log.in_rounds:
        then = "the world keeps them, as its server would wait for them for ever"
    else:
        groups = list(world.tree["clients"]["groups"].values())
        for client, time in gone.items():
            groups[client]["leave"] = six(time)
    world.remarks.append(f"clients leave the log before its end: {who}; {then}")
    return world


def write_world(world: FittedWorld, path: Path) -> None:
    """Writes a fitted world and the values that it reads.

    Raises:
        StudyError: it cannot be written.
        ScenarioError: it cannot be simulated, with the reason.
    """
    head = [f"# {world.tree['source']} by stalesim log fit"]
    head += [f"# Note: {remark}" for remark in world.remarks]
    text = "\n".join([*head, dialect.dump(world.tree)])
    with explained(path.parent):
        for file, columns in world.tables.items():
            replace(DISK, file, _parquet(columns))
        replace(DISK, path, text.encode())
    read_any(path)


def play_like(
    log: str | Path,
    folder: Path,
    given: object,
    columns: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
    changes: Sequence[str] = (),
) -> tuple[Study, FittedWorld]:
    """Writes a log's timeline, and those of its fitted world, by another protocol too.

    Args:
        log: Log of jobs.
        folder: New or empty.
        given: Entry `protocol` of a scenario, or the kind alone.
        columns: Columns of the file, by stalesim's names.
        progress: Called with the fraction that is played.
        changes: Of the fitted scenario, as `--set` has them: `replicates=10`.

    Raises:
        UserError: something in the log, the protocol or the folder is wrong.
    """
    other = {"kind": given} if isinstance(given, str) else given
    other = other if isinstance(other, dict) else {}
    name = other.get("kind")
    if name is None:
        raise UserError(
            f"--protocol must be a kind, or a mapping with one, got {shown(given)}; "
            f"stalesim list protocols names them"
        )
    read = read_log(log, columns)
    world = world_of(read, folder / "world")
    if _disagreeing(read).any():
        read.table.frame = read.table.frame.drop(columns="read_version")
    read, cut = _until_one_leaves(read)
    world.tree["stop"] = {"time": six(read.times["arrived_time"].max())}
    world.remarks.extend(cut)
    first = source_of(read)
    own = world.tree["protocol"]
    other = {key: value for key, value in other.items() if value is not None}
    if is_same(own, other):  # another kind begins without entries of the log's own
        other = dict.fromkeys(own, None) | other
    tree = world.tree | {"variants": {"fitted": {}, str(name): {"protocol": other}}}
    changed = tree
    for change in changes:
        changed = overrides.apply(changed, change, {}, Synonyms(WorldScenario))
    validated_as(changed, WorldScenario)
    file = folder / "scenario.yaml"
    with emptied(folder), _undone(folder, [file, *world.tables]):
        write_world(world._replace(tree=tree), file)
        scenario = read_any(file, changes)
        held = inputs.collect(run.scenario for run in expand(scenario))
        with inputs.held(held):
            told = inputs.manifest_entries(held)
            told["inputs"] |= inputs.of_log(log)
            sources = sources_of(scenario, 1)
            tree = scenario.model_dump(mode="json")
            every = [first, *sources]
            return write_held(folder, tree, every, told, "timeline", progress), world


@contextmanager
def _undone(folder: Path, files: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if not DISK.exists(folder / NAME):
            for file in files:
                DISK.remove(file)
        raise


def _stages(log: ClientLog) -> dict[str, list[Series]]:
    times, frame = log.times, log.table.frame
    ended = log.outcome != Outcome.LOST
    rounds = log.table.numbers("round") if log.in_rounds else None
    number = None
    if rounds is not None:
        number = np.unique(rounds, return_inverse=True)[1].astype(np.float64)
    bounds = {"compute": ("begun_time", "computed_time")}
    if "begun_time" in frame:
        bounds = {"download": ("read_time", "begun_time"), **bounds}
    if "computed_time" in frame or "sent_time" in frame:
        bounds["upload"] = "sent_time", "arrived_time"
    kept = np.flatnonzero(ended)
    kept = kept[np.lexsort((times["read_time"][kept], log.client[kept]))]
    own = np.arange(1, len(log.labels))
    orders = np.split(kept, np.searchsorted(log.client[kept], own))
    found = {
        stage: [
            Series(
                times[start][mine],
                np.round(times[end][mine] - times[start][mine], DIGITS),
                None if number is None else number[mine],
            )
            for mine in orders
        ]
        for stage, (start, end) in bounds.items()
    }
    if not log.in_rounds:
        found["idle"] = [
            Series(
                times["arrived_time"][mine][:-1],
                np.round(
                    times["read_time"][mine][1:] - times["arrived_time"][mine][:-1],
                    DIGITS,
                ),
            )
            for mine in orders
        ]
    return {
        stage: every
        for stage, every in found.items()
        if stage == "compute" or any((one.seconds > 0).any() for one in every)
    }


def _pauses(every: list[Series]) -> tuple[list[Series], list[float]]:
    some = [one.seconds > 0 for one in every]
    left = [
        Series(one.start[kept], one.seconds[kept])
        for one, kept in zip(every, some, strict=True)
    ]
    return left, [1 - float(kept.mean()) if kept.size else 1.0 for kept in some]


def _of_pauses(one: Series, measured: Entry, among: int) -> SeriesFit:
    """Fits pauses: independent, as what is between them is not known."""
    found = fit_law(one.seconds, grain=10.0**-DIGITS, among=among)
    law = found.law if found.accepted and found.law is not None else measured
    nothing: Float[np.ndarray, " n"] = np.zeros(0)
    return SeriesFit(
        "independent", law, one.seconds, found.p, found.why, {}, {}, nothing, nothing
    )


def _room_path(path: Path, number: int) -> Path:
    return path.with_suffix(f".room-{number}.parquet")


def _names(labels: list[str]) -> list[str]:
    names = [re.sub(r"[^A-Za-z0-9_-]", "-", label) for label in labels]
    names = [f"client-{name}" if name[:1].isdigit() else name for name in names]
    if min(Counter(names).values()) < max(Counter(names).values()) or "" in names:
        return [f"{name}-{number}" for number, name in enumerate(names, 1)]
    return names


def _until_one_leaves(log: ClientLog) -> tuple[ClientLog, list[str]]:
    """Returns a log until its first client leaves, and a remark if that is early."""
    ended, gone = leaving(log)
    if not gone:
        return log, []
    first = min(gone, key=gone.__getitem__)
    until, end = gone[first], ended.max()
    kept = ended <= until
    log.table.frame = log.table.frame[kept]
    times = {name: values[kept] for name, values in log.times.items()}
    remark = (
        f"compared are the first {until:.6g} of {end:.6g} s of the log: then client "
        f"{log.labels[first]} leaves; leave it out to compare more (the world of "
        f"stalesim log fit has the key leave)"
    )
    client, outcome = log.client[kept], log.outcome[kept]
    return log._replace(client=client, times=times, outcome=outcome), [remark]


def _disagreeing(log: ClientLog, size: int = 1) -> np.ndarray:
    """Returns which jobs say that they read a version other than by their times."""
    if "read_version" not in log.table.frame:
        return np.zeros(log.client.size, bool)
    applied = log.outcome == Outcome.APPLIED
    made = np.sort(log.times["arrived_time"][applied])
    if "applied_time" in log.times:  # of each version, which the log names
        commits = log.table.numbers("commit")[applied]
        first_of = np.unique(commits, return_index=True)[1]
        made = np.sort(log.times["applied_time"][applied][first_of])
    return log.stated_versions(made, size)[1]


def _buffer(log: ClientLog) -> int:
    """Returns the arrivals of a version with which all versions agree; 1 if none."""
    sizes = range(1, 2 * len(log.labels) + 1)
    return next((size for size in sizes if not _disagreeing(log, size).any()), 1)


def _remarks(log: ClientLog) -> list[str]:
    found, wrong, table = [], _disagreeing(log), log.table
    if wrong.any():
        row, size = int(wrong.argmax()), _buffer(log)
        found.append(
            f"the server of the log makes a version of {size} arrivals: all versions "
            f"agree with that"
            if size > 1
            else f"{wrong.sum()} of {wrong.size} jobs have a read_version that is not "
            f"the number of arrivals applied before the read (first in row "
            f"{table.number(row)}): the server does something that the scenario does "
            f"not say"
        )
    lost = int((log.outcome != Outcome.APPLIED).sum())
    if lost:
        found.append(
            f"{lost} of {log.outcome.size} jobs were lost or rejected; the fitted "
            f"world has none of that"
        )
    if log.repeats:
        found.append(
            f"{log.repeats} rows are left out, whose client has another of the round"
        )
    waited = log.times["sent_time"] - log.times["computed_time"]
    if (waited > 0).any():
        found.append(
            f"{(waited > 0).mean():.0%} of jobs waited between computing and sending, "
            f"{waited.mean():.3g} s on average; the fitted world has none of that"
        )
    return found


def _parquet(columns: dict[str, np.ndarray]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()
