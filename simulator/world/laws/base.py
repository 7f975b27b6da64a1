"""The base of all laws of durations: configuration, and sampler for some clients.

A law's parameters may be a number, a list with one entry per client, an arithmetic
expression in the 1-based client index `m` and the client count `M`, or a law itself:
then every client has its own parameter, drawn once.

Every draw is the law's quantile function at one keyed number in (0, 1): then one
client's next hundred draws and the next draw of a million clients are the same vector
operation, and mixtures, regimes, memory and truncation are compositions.

A law on a lattice (constant, or any discrete distribution of SciPy) names the
rational numbers that its values are integer combinations of; a world whose laws all do
so runs on integer ticks, because float sums of lattice delays put many rows in another
order than exact ones.
"""

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from ...parts.base import LocatedError, Part
from ...parts.catalogue import AnyPart
from ...parts.errors import ScenarioError
from ...parts.expressions import Number, Quantity, depends_on_client, per_client
from ..streams import Purpose, Streams
from .usual import Family

Durations = Float[np.ndarray, " n"] | Int[np.ndarray, " n"]
Who = int | Int[np.ndarray, " n"]
"""One client of all draws, or a client for each."""


class Population(NamedTuple):
    """The clients whose durations a law draws.

    Attributes:
        size: Number of clients.
        streams: Streams keyed by the run's seed, for parameters that are drawn.
        first: Number of the first client, from 0.
        stage: Use of the law; part of the key of drawn parameters, and of messages.
    """

    size: int
    streams: Streams
    first: int = 0
    stage: str = "law"


class Draws(NamedTuple):
    """The random numbers of some durations, and their clients.

    Attributes:
        uniform: Numbers in (0, 1), one for each duration.
        who: Client of each duration, from 0 within the population.
        position: Number of durations of this law that the client had before; an integer
            for the first of successive ones of a single client.
    """

    uniform: Float[np.ndarray, " n"]
    who: Who
    position: Int[np.ndarray, " n"] | int

    @property
    def positions(self) -> Int[np.ndarray, " n"]:
        """Number of durations of this law that the client had before each."""
        if isinstance(self.position, int):
            return self.position + np.arange(self.uniform.size)
        return self.position


@runtime_checkable
class DurationSampler(Protocol):
    """Draws the durations of one stage, for every client of a population."""

    def lattice(self) -> set[Fraction] | None:
        """Returns numbers of which all durations are integer combinations, or None."""
        return None

    @abstractmethod
    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns the durations, >= 0, in ticks of `tick` seconds or in seconds."""


class ClosedForm(NamedTuple):
    """A law as a family of SciPy's, with each client's parameters.

    Attributes:
        number: n, clients.
        family: The family; None if all durations are constant.
        shapes: Parameters of the family, each of one value or of one per client.
        loc: Location in the family's own unit; constant durations in seconds.
        scale: Scale, seconds.
        shift: Shift, seconds.
        independent: Whether a client's draws do not depend on those before them.
    """

    number: int
    family: Family | None
    shapes: dict[str, Float[np.ndarray, " _"]]
    loc: Float[np.ndarray, " _"]
    scale: Float[np.ndarray, " _"]
    shift: Float[np.ndarray, " _"]
    independent: bool = True


class Law(Part):
    """A law of durations: its options, which a scenario chooses by `law`."""

    def make(self, population: Population) -> DurationSampler:
        raise NotImplementedError

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        """Refuses a law whose durations may be negative or are no numbers.

        Args:
            num_clients: Number of clients that its parameters are for.
            name: Dotted key of the law, for messages.

        Returns:
            For each client, whether a duration can be above 0.

        Raises:
            LocatedError: saying which parameter of which client, and what to do.
        """
        return np.ones(num_clients, bool)

    @property
    def varies(self) -> bool:
        """Whether the draws of one client differ."""
        return True

    @property
    def remembers(self) -> bool:
        """Whether a client's draw depends on those before it."""
        return False

    @property
    def has_quantiles(self) -> bool:
        """Whether larger numbers in (0, 1) never draw shorter durations."""
        return False

    def closed_form(self, num_clients: int) -> ClosedForm:
        """Returns the law as a family of SciPy's, for formulas.

        Args:
            num_clients: Number of clients that its parameters are for.

        Raises:
            ValueError: it is of no such family, or clients draw a parameter of it.
        """
        raise ValueError(f"no closed form is known for the law {self._name!r}")

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        """Returns the mean of each client's durations in the long run, or one for all.

        Infinite where there is none. Laws outside SciPy's families may have one, too.

        Args:
            num_clients: Number of clients that its parameters are for.

        Raises:
            ValueError: it is not known, or clients draw a parameter of it.
        """
        raise ValueError(f"no mean is known for the law {self._name!r}")

    @property
    def _name(self) -> str:
        return getattr(self, "law", type(self).__name__)


AnyLaw = Annotated[Law, AnyPart("laws")]
"""Any law: ours by name, SciPy's by SciPy's name."""
AlternatingLaws = tuple[tuple[Purpose, Law], tuple[Purpose, Law]]
"""Laws of two states of a client that take turns, with the purposes of their draws."""
AnyQuantity = Quantity | Law
"""A number, an expression, a number for each client, or a law that they draw it by."""


def refuse_two_sizes(law: Any) -> None:
    """Refuses a law with a scale and a mean, of which one gives the other."""
    if law.mean is not None and "scale" in law.model_fields_set:
        raise ValueError(
            "must have a scale or a mean, got both; remove one (in a variant by "
            "scale: null)"
        )


def scaled_to_mean(
    law: Any, added: tuple[str, ...], num_clients: int, name: str
) -> Any:
    """Returns a law with the scale that gives its mean, in place of the mean.

    Args:
        law: Law with entries `scale` and `mean`.
        added: Its entries that are added to `scale * X`, in seconds.
        num_clients: Number of clients that its parameters are for.
        name: Dotted key of the law, for messages.

    Raises:
        LocatedError: No mean is known, or no scale gives this one.
    """
    unit = law.model_copy(update={"mean": None, "scale": 1, **dict.fromkeys(added, 0)})
    try:
        own = unit.mean_seconds(num_clients).tolist()
        columns = [
            distinct_values(getattr(law, key), num_clients, f"{name}.{key}")
            for key in ("mean", *added)
        ]
    except LocatedError:
        raise
    except ValueError:  # it is drawn, or not known
        own, columns = [np.inf], []
    if not all(0 < mean < np.inf for mean in own):
        raise LocatedError(
            f"{name}.mean must be left out for the law {law.law!r}, of which no mean "
            f"> 0 is known; give a scale",
            keys(f"{name}.mean"),
        )
    columns = [*columns, [Fraction(repr(mean)) for mean in own]]
    size = max(map(len, columns))
    rows = zip(*(column * (size // len(column)) for column in columns), strict=True)
    scales = tuple((mean - sum(start)) / unit for mean, *start, unit in rows)
    if min(scales) <= 0:
        client = scales.index(min(scales))
        raise LocatedError(
            f"{name}.mean must be more than {' and '.join(added)} add to the law, got "
            f"no more for client {client + 1}; raise it",
            keys(f"{name}.mean"),
        )
    return law.model_copy(
        update={"mean": None, "scale": scales if size > 1 else scales[0]}
    )


def check_cycle(laws: Mapping[str, Law], num_clients: int) -> None:
    """Refuses laws of a cycle that are wrong, or with which time does not advance.

    Args:
        laws: Laws of one cycle, by the dotted key of the stage; later keys are named
            first.
        num_clients: Number of clients that their parameters are for.

    Raises:
        LocatedError: saying which parameter of which client, and what to do.
    """
    moves = np.zeros(num_clients, bool)
    for name, law in laws.items():
        moves |= law.check(num_clients, name)
    if not moves.all():
        *_, name = laws
        raise LocatedError(
            f"{name} must take time, got always 0 s for client "
            f"{int(moves.argmin()) + 1}; give {' or '.join(laws)} a law that is not "
            f"always 0",
            tuple(name.split(".")),
        )


def common_tick(laws: list[DurationSampler]) -> Fraction | None:
    """Returns the longest tick, seconds, of which all durations are multiples.

    None if a law is not on a lattice, or the lattice is finer than 1e-12 s.
    """
    numbers = joint_lattice(laws)
    if numbers is None:
        return None
    numbers.discard(Fraction(0))
    if not numbers:
        return None
    denominator = int(np.lcm.reduce([n.denominator for n in numbers], dtype=object))
    numerator = int(
        np.gcd.reduce([int(n * denominator) for n in numbers], dtype=object)
    )
    tick = Fraction(numerator, denominator)
    return tick if tick >= Fraction(1, 10**12) else None


def joint_lattice(laws: list[DurationSampler]) -> set[Fraction] | None:
    """Returns the steps of all laws together; None if one of them is on no lattice."""
    steps: set[Fraction] = set()
    for law in laws:
        lattice = law.lattice()
        if lattice is None:
            return None
        steps |= lattice
    return steps


LONGEST_S = 1e15
"""Seconds of the longest place or scale of a law, some 30 million years."""


class ClientValues:
    """One parameter of a law for every client of a population.

    Args:
        exact: The value of all clients, or a list of each client's.
    """

    def __init__(self, exact: list[Number]) -> None:
        self._exact = exact
        self.values = np.array([float(value) for value in exact])
        self._one = self.values.size == 1
        self._ticks: dict[Fraction, np.ndarray] = {}

    @classmethod
    def given(
        cls, quantity: AnyQuantity, population: Population, name: str
    ) -> "ClientValues":
        """Evaluates or draws a parameter.

        Args:
            quantity: Number, list, expression or law, as the scenario has it.
            population: The clients.
            name: Name of the parameter, for its key and for messages.
        """
        size, first = population.size, population.first
        if isinstance(quantity, Law):
            key = zlib.crc32(f"{population.stage}.{name}".encode())
            clients = np.arange(first, first + size)
            at = np.full(size, key)
            uniform = population.streams.scattered(Purpose.PARAMETER, clients, at)
            law = quantity.make(population._replace(stage=f"{key}"))
            return cls(law.draw(Draws(uniform, clients - first, 0 * at), None).tolist())
        one = isinstance(quantity, int | float)
        return cls(per_client(quantity, 1 if one else size, name))

    def plus(self, factor: "ClientValues", other: "ClientValues") -> "ClientValues":
        """Returns these values plus a factor times other ones, client by client."""
        size = max(map(len, (self._exact, factor._exact, other._exact)))
        start, times, at = (
            column._exact * (size if column._one else 1)
            for column in (self, factor, other)
        )
        return ClientValues(
            [a + b * c for a, b, c in zip(start, times, at, strict=True)]
        )

    @property
    def rational(self) -> set[Fraction] | None:
        """Returns the distinct values, where all of them are rational."""
        distinct = set(self._exact)
        if not all(isinstance(value, Fraction | int) for value in distinct):
            return None
        return {Fraction(value) for value in distinct}

    def of(self, who: Who) -> Float[np.ndarray, "*n"]:
        """Returns the value of a client, or one for each of several."""
        return self.values[0] if self._one else self.values[who]

    def ticks(self, who: Who, tick: Fraction) -> Int[np.ndarray, "*n"]:
        """Returns the value in ticks, of a client or for each of several."""
        if tick not in self._ticks:
            self._ticks[tick] = np.array([_ticks(value, tick) for value in self._exact])
        ticks = self._ticks[tick]
        return ticks[0] if self._one else ticks[who]


def check_parameter(
    parameter: AnyQuantity, num_clients: int, name: str, *, above: bool = False
) -> None:
    """Refuses a client's own number that is negative; or zero, if it must be `above`.

    One that every client draws is checked as a law.

    Raises:
        LocatedError: saying which client's.
    """
    if isinstance(parameter, Law):
        parameter.check(num_clients, name)
        return
    for client, value in enumerate(distinct_values(parameter, num_clients, name)):
        if value < 0 or (above and not value):
            raise LocatedError(
                f"{name} must be {'>' if above else '>='} 0, got {float(value):g} for "
                f"client {client + 1}; change it",
                keys(name),
            )


def check_drawn(
    parameters: Mapping[str, AnyQuantity], num_clients: int, name: str
) -> bool:
    """Checks the laws of parameters that each client draws; returns if there are any.

    The values themselves are checked when they have been drawn.
    """
    drawn = {key: value for key, value in parameters.items() if isinstance(value, Law)}
    for key, value in drawn.items():
        value.check(num_clients, f"{name}.{key}")
    return bool(drawn)


def positive(
    quantity: AnyQuantity, num_clients: int, name: str
) -> Bool[np.ndarray, " n"]:
    """Returns whether each client's parameter, in seconds or a factor, is above 0.

    Raises:
        LocatedError: it is negative for a client.
    """
    check_parameter(quantity, num_clients, name)
    values = distinct_values(quantity, num_clients, name)
    for client, value in enumerate(values):
        if value > LONGEST_S:
            raise LocatedError(
                f"{name} must be at most {LONGEST_S:g}, beyond which no clock counts, "
                f"got {float(value):g} for client {client + 1}; use larger units of "
                f"time",
                keys(name),
            )
    return for_each([value > 0 for value in values], num_clients)


def distinct_values(quantity: AnyQuantity, num_clients: int, name: str) -> list[Number]:
    """Returns the value of every client, or one if they are written as equal.

    A million clients are then checked like one.

    Raises:
        LocatedError: a list of another length, or an expression without a value.
        ValueError: every client draws it.
    """
    if isinstance(quantity, Law):
        raise ValueError(f"{name} is drawn for every client")
    try:
        values = per_client(quantity, num_clients, name)
        own = isinstance(quantity, tuple | list) or depends_on_client(quantity)
        return values if own else values[:1]
    except ScenarioError as error:
        raise LocatedError(str(error), keys(name)) from None


def known_values(
    quantity: AnyQuantity, num_clients: int, name: str
) -> Float[np.ndarray, " _"]:
    """Returns the same as floating-point numbers."""
    return np.array([float(v) for v in distinct_values(quantity, num_clients, name)])


def for_each(found: list[bool], num_clients: int) -> Bool[np.ndarray, " n"]:
    """Repeats the result for one client of many equal ones; copies individual ones."""
    return np.broadcast_to(np.array(found, bool), num_clients).copy()


def keys(name: str) -> tuple[str, ...]:
    """Splits a dotted key as errors of a scenario have it."""
    return tuple(name.split("."))


@cache
def _ticks(value: Fraction | float, tick: Fraction) -> int:
    ticks = Fraction(value) / tick
    if ticks.denominator != 1:
        raise AssertionError(f"{value} s is not a multiple of the tick, {tick} s")
    return int(ticks)
