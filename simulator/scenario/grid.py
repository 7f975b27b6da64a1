"""The points of a sweep: lists, names, ranges, zipped lists, random draws."""

import itertools
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard

import numpy as np
from pydantic import Field, ValidationError, model_serializer, model_validator

from ..parts.base import Config, LocatedError
from ..parts.errors import TAGS, printed, shown
from ..parts.messages import first_error
from ..world.laws.distributions import Scipy, check_names, family
from .dialect import Keys

ZIPPED, RANDOM, NUM = "zipped", "random", "num"
"""Keys of a sweep, and of random draws, that are no dotted keys of a scenario."""
REPLICATES = "replicates"
"""Key among zipped lists that gives each of their points its own replicates."""
DIGITS = 4
"""Significant digits of computed values: labels show the values that run."""
MOST = 10_000
"""Points of a sweep: each is a separate scenario, 15 kB and 2 ms of validation."""

Swept = Annotated[
    Annotated[tuple[Any, ...], Field(min_length=1)] | dict[str, Any],
    Field(union_mode="left_to_right"),
]
"""Entry of a swept key: a list, names with values, a `Range`, `zipped` or `random`."""


class SweptValue(NamedTuple):
    """A value of a swept key at one point.

    Attributes:
        value: Number, word, list or sub-tree.
        place: Place of the value in the scenario, from the sweep on.
        name: Name of the value, which a part of a list has without being given one.
    """

    value: object
    place: Keys
    name: str | None = None


Point = dict[str, SweptValue]
"""One point of a sweep, by dotted key."""


class Span(Config):
    """Numbers between two ends, on a linear or a logarithmic scale."""

    from_: Annotated[float, Field(alias="from")]
    """First value."""
    to: float
    """Last value."""
    scale: Literal["linear", "log"] = "linear"
    """Whether values have equal distances or equal ratios."""
    whole: bool = False
    """Rounds to whole numbers, for keys that count something."""

    @model_validator(mode="after")
    def _fits(self) -> "Span":
        if self.from_ == self.to:
            raise ValueError("must have different ends; change from or to")
        if self.scale == "log" and not min(self.from_, self.to) > 0:
            raise LocatedError(
                f"from and to must be > 0 on a logarithmic scale, got {self.from_:g} "
                f"and {self.to:g}; change them, or take scale: linear",
                ("scale",),
            )
        return self

    @model_serializer(mode="wrap")
    def _as_written(
        self, dump: Callable[["Span"], dict[str, object]]
    ) -> dict[str, object]:
        tree = dump(self)
        return {"from": tree.pop("from_"), **tree}


class Range(Span):
    """Numbers at equal distances or, on a logarithmic scale, at equal ratios."""

    num: Annotated[int, Field(ge=2, le=MOST)]
    """How many, both ends among them."""

    def values(self) -> list[float | int]:
        """Returns the numbers, with 4 significant digits, or rounded to whole ones.

        Among fractions a whole number stays one, so that 1.0 is no count.
        """
        space = np.geomspace if self.scale == "log" else np.linspace
        numbers = space(self.from_, self.to, self.num).tolist()
        if self.whole:
            return [round(x) for x in numbers]
        found = [short(x) for x in numbers]
        are_whole = all(isinstance(x, int) for x in found)
        return found if are_whole else [float(x) for x in found]


def points(sweep: Mapping[str, object], seed: int) -> list[Point]:
    """Returns every combination of the swept values, the last key changing fastest.

    A list, names with values and a range are an axis each; the lists of `zipped` are
    one axis together, and so are the draws of `random`.

    Args:
        sweep: Sweep of a scenario or of a variant.
        seed: Seed of the study. Each key's draws are its own: other keys, and a larger
            `num`, leave them as they are.

    Raises:
        LocatedError: Something in the sweep is none of these; a key is swept twice, or
            a point would be run twice.
    """
    axes: list[list[Point]] = []
    for key, entry in sweep.items():
        if key == ZIPPED:
            axes.append(_zipped(entry))
        elif key == RANDOM:
            axes.append(_random(entry, seed))
        else:
            axes.append([{key: value} for value in _values(entry, (key,))])
    _check_keys(axes)
    number = math.prod(len(axis) for axis in axes)
    if number > MOST:
        told = " x ".join(f"{len(axis):,}" for axis in axes)
        raise LocatedError(
            f"sweep must have at most {MOST:,} points, got {number:,} ({told}); take "
            f"fewer values, or draw points by random"
        )
    return [
        {key: value for part in combination for key, value in part.items()}
        for combination in itertools.product(*axes)
    ]


def _values(entry: object, place: Keys) -> list[SweptValue]:
    values = _column(entry, place)
    remedy = "lower num" if _is_range(entry) else "remove one"
    known: set[object] = set()
    for value, where, _ in values:
        if _identity(value) in known:
            raise _mistake(
                place,
                f"must have different values, got {shown(value)} twice; {remedy}",
                where,
            )
        known.add(_identity(value))
    return values


def _column(entry: object, place: Keys) -> list[SweptValue]:
    if _is_range(entry):
        return [SweptValue(number, place) for number in _range(entry, place).values()]
    if isinstance(entry, Mapping) and entry and not {*entry} & {*TAGS}:
        return [SweptValue(each, (*place, name), name) for name, each in entry.items()]
    if isinstance(entry, list | tuple) and entry:
        # A search adds to what is zipped, which must change no name.
        names = {} if ZIPPED in place else _told_apart(entry)
        return [
            SweptValue(value, (*place, i), names.get(i))
            for i, value in enumerate(entry)
        ]
    raise _mistake(
        place,
        f"must be a list of values, names with values, or a range, got {shown(entry)}; "
        f"write for example [1, 2], {{low: 1, high: 2}} or {{from: 1, to: 10, num: 4}}",
    )


def _is_range(entry: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(entry, Mapping) and bool({*entry} & {"from", "to", NUM})


def _range(entry: Mapping[str, object], place: Keys) -> Range:
    try:
        return Range.model_validate(entry)
    except ValidationError as error:
        keys, message = first_error(error, entry, Range)
        name = ".".join(map(str, ("sweep", *place)))
        where = "" if message.startswith("must") else "."
        raise LocatedError(
            f"{name}{where or ' '}{message}", ("sweep", *place, *keys)
        ) from None


def _zipped(entry: object) -> list[Point]:
    """Returns the points of lists that are stepped through together."""
    if not isinstance(entry, Mapping) or not entry:
        raise _mistake(
            (ZIPPED,),
            f"must give keys lists of the same length, got {shown(entry)}; write for "
            f"example {{algorithm.batch_size: [8, 16], algorithm.mu: [0.1, 0.2]}}",
        )
    columns = {
        str(key): _column(values, (ZIPPED, str(key))) for key, values in entry.items()
    }
    sizes = {key: len(values) for key, values in columns.items()}
    if len({*sizes.values()}) > 1:
        told = ", ".join(f"{key} has {size}" for key, size in sizes.items())
        raise _mistake(
            (ZIPPED,), f"must have lists of the same length, but {told}; add or remove"
        )
    for value, place, _ in columns.get(REPLICATES, ()):
        if type(value) is not int or value < 1:
            raise _mistake(
                (ZIPPED, REPLICATES),
                f"must be whole numbers >= 1, got {shown(value)}; change it",
                place,
            )
    rows = _rows(columns)
    return _different(rows, ZIPPED, "remove one")


def _random(entry: object, seed: int) -> list[Point]:
    """Returns points that are drawn independently, all keys of one for each."""
    tree = entry if isinstance(entry, Mapping) else {}
    num = tree.get(NUM)
    if not isinstance(num, int) or num is True or not 1 <= num <= MOST:
        raise _mistake(
            (RANDOM,),
            f"must have num, a whole number from 1 to {MOST:,}, and keys with laws or "
            f"lists to draw from, got {shown(entry)}; write for example {{num: 20, "
            f"algorithm.learning_rate: {{law: loguniform, a: 0.001, b: 1}}}}",
        )
    columns = {
        str(key): list(_draws(str(key), law, num, seed))
        for key, law in tree.items()
        if key != NUM
    }
    if not columns:
        raise _mistake((RANDOM,), "must have a key to draw; add one next to num")
    rows = _rows(columns)
    return _different(rows, RANDOM, "lower num, or draw from a continuous law")


def _draws(key: str, law: object, num: int, seed: int) -> Iterator[SweptValue]:
    """Yields a key's draws, by inversion of a stream that is its own."""
    place: Keys = (RANDOM, key)
    entropy = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(key.encode()), 1))
    uniform = np.random.default_rng(entropy).random(num)
    if isinstance(law, list | tuple) and law:
        values = _column(law, place)
        yield from (values[i] for i in (uniform * len(law)).astype(int).tolist())
        return
    quantile = _quantile(law, place)
    for number in quantile(uniform).tolist():
        if not np.isfinite(number):
            raise _mistake(
                place,
                f"must be a law that exists, but {shown(law)} does not; see "
                f"scipy.stats for the parameters' ranges",
            )
        yield SweptValue(short(number), place)


def _quantile(entry: object, place: Keys) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the inverse of a law's distribution function, for arrays."""
    if not isinstance(entry, Mapping) or "law" not in entry:
        raise _mistake(
            place,
            f"must be a law or a list, got {shown(entry)}; write for example "
            f"{{law: loguniform, a: 0.001, b: 1}}",
        )
    name = ".".join(("sweep", *map(str, place)))
    try:
        law = Scipy.model_validate(entry)
        known = family(law.law, name)
        check_names(law, [n for n in (known.shapes or "").split(", ") if n], name)
    except ValidationError as error:
        _, message = first_error(error, entry, Scipy)
        raise _mistake(place, f"must be a law, but {message}") from None
    except LocatedError as error:
        raise LocatedError(str(error), ("sweep", *place)) from None
    if law.mean is not None:
        raise _mistake(place, "must have a scale in place of a mean; change it")
    parameters = {
        **law.parameters,
        "loc": law.loc,
        "scale": law.scale,
        "shift": law.shift,
    }
    numbers: dict[str, float] = {}
    for parameter, number in parameters.items():
        if not isinstance(number, int | float):
            raise _mistake(
                place, f"must have numbers alone, got {parameter}: {shown(number)}"
            )
        numbers[parameter] = number
    loc, scale, shift = (numbers[key] for key in ("loc", "scale", "shift"))
    if not scale > 0:
        raise _mistake(place, f"must have a scale > 0, got {scale:g}")
    standard = known(**{name: numbers[name] for name in law.parameters})

    def quantile(uniform: np.ndarray) -> np.ndarray:
        drawn = standard.ppf(uniform)
        if hasattr(known, "pmf"):
            return shift + scale * (loc + drawn)
        return shift + loc + scale * drawn

    return quantile


def _rows(columns: dict[str, list[SweptValue]]) -> list[Point]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _check_keys(axes: list[list[Point]]) -> None:
    known: set[str] = set()
    for axis in axes:
        for key, value in axis[0].items():
            if key in known:
                raise LocatedError(
                    f"sweep must have {key} once, got it twice; remove one",
                    ("sweep", *value.place),
                )
            known.add(key)


def _different(rows: list[Point], kind: str, remedy: str) -> list[Point]:
    known: set[object] = set()
    for row in rows:
        values = [each.value for key, each in row.items() if key != REPLICATES]
        mine = tuple(map(_identity, values))
        if mine in known:
            told = ", ".join(f"{key} = {shown(v.value)}" for key, v in row.items())
            place = next(iter(row.values())).place
            raise _mistake(
                (kind,),
                f"must have different points, got {told} twice; {remedy}",
                place,
            )
        known.add(mine)
    return rows


def _identity(value: object) -> float | str:
    """Returns what two values that are the same have in common; 1 is 1.0."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return json.dumps(value, sort_keys=True, default=str)


def _told_apart(values: Sequence[object]) -> dict[int, str]:
    """Returns short names of parts in a list, such as `pareto b=1.5`, by position."""
    parts = {i: part for i, part in enumerate(values) if isinstance(part, Mapping)}
    found = {
        i: printed({k: part[k] for k in TAGS if k in part}) for i, part in parts.items()
    }
    for kind in {*found.values()}:
        alike = [i for i, name in found.items() if name == kind]
        keys = dict.fromkeys(k for i in alike for k in parts[i] if k not in TAGS)
        words = [
            [
                f"{key}={printed(parts[i][key])}" if key in parts[i] else ""
                for i in alike
            ]
            for key in keys
        ]
        different = [each for each in words if len({*each}) > 1]
        alone = [each for each in different if len({*each}) == len(alike)]
        if alone:
            different = [min(alone, key=lambda each: max(map(len, each)))]
        for i, *own in zip(alike, *different, strict=True):
            found[i] = " ".join(filter(None, (kind, *own)))
    return found


def short(number: float) -> float | int:
    """Returns a number with 4 significant digits; a whole one as an integer."""
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _mistake(name: Keys, message: str, place: Keys | None = None) -> LocatedError:
    told = ".".join(map(str, ("sweep", *name)))
    return LocatedError(f"{told} {message}", ("sweep", *(place or name)))
