"""The base of all laws of durations: configuration, and sampler for some clients.

A law's parameters may be a number, a list with one entry per client, an arithmetic
expression in the 1-based client index `m` and the client count `M`, or a law itself:
then every client has a parameter of its own, drawn once.

Every draw is the law's quantile function at one keyed number in (0, 1): then one
client's next hundred draws and the next draw of a million clients are the same vector
operation, and mixtures, regimes, memory and truncation are compositions.

A law on a lattice (constant, or any discrete distribution of SciPy) names the
rational numbers that its values are integer combinations of; a world whose laws all do
so runs on integer ticks, because float sums of lattice delays put many rows in another
order than exact ones.
"""

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    runtime_checkable,
)

import numpy as np
from jaxtyping import Bool, Float, Int

from ...parts.base import LocatedError
from ...parts.catalogue import AnyPart
from ...parts.parts import Part
from ..streams import Streams

if TYPE_CHECKING:
    AnyLaw = Any
else:
    AnyLaw = Annotated[Any, AnyPart("laws")]
"""Any law: ours by name, SciPy's by SciPy's name."""
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

    @abstractmethod
    def lattice(self) -> set[Fraction] | None:
        """Returns numbers of which all durations are integer combinations, or None."""

    @abstractmethod
    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns the durations, >= 0, in ticks of `tick` seconds or in seconds."""


class ClosedForm(NamedTuple):
    """A law as a family of SciPy's, with each client's parameters.

    Attributes:
        family: Family of SciPy, or what stands for a usual one (`usual.Usual`); None if
            all durations are constant.
        shapes: Parameters of the family, each of one value or of one per client.
        loc: Location in the family's own unit; constant durations in seconds.
        scale: Scale, seconds.
        shift: Shift, seconds.
        independent: Whether a client's draws do not depend on those before them.
    """

    family: Any
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
        name = getattr(self, "law", type(self).__name__)
        raise ValueError(f"no closed form is known for the law {name!r}")


def check_cycle(laws: Mapping[str, Law], num_clients: int) -> None:
    """Refuses laws of a cycle that are wrong, or with which time stands still.

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
