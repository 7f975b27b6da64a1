"""Accounting for the clients' privacy, and limits of how much of it is spent."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ..parts.base import Config, LocatedError, NamedPart, Rule
from ..parts.catalogue import AnyName
from ..privacy.parts import accountant
from ..privacy.releases import Calibrated
from ..problem.capabilities import StoresEmbeddings, noise_of
from ..world.protocol import LockStep

if TYPE_CHECKING:
    from ..engine.algorithm import Algorithm
    from .scenario import Scenario

Name = Annotated[str, AnyName("accountants")]

AUTO: dict[bool, tuple[str, ...]] = {
    True: ("rdp", "gdp"),
    False: ("optimal", "advanced", "basic"),
}
"""Accountants of Gaussian noise and of pure epsilons, the tightest proven one first.
There is no `pld` among them: `gdp` at sampling ratio 1 and `optimal` are exact, and it
takes up to a second where they take microseconds."""
EXAMPLES = ("basic", "advanced", "optimal", "rdp", "pld", "gdp")
"""Accountants that a message may propose."""


class Privacy(Config):
    """Accounts for the messages that each client sends, applied or not.

    Nothing is claimed for the probability that a client sends at all: only its own draw
    of a batch can amplify. VAFL has its own accounting, in `algorithm.perturbation`.
    """

    accountants: Annotated[
        Literal["auto"] | Annotated[tuple[Name, ...], Field(min_length=1)],
        Rule("auto, or a list of accountants", "[optimal, basic]"),
    ] = "auto"
    """`auto`: rdp and gdp for Gaussian noise; optimal, advanced and basic for others;
    before them the one of `algorithm.mechanism.budget`. pld is exact as well, and slow.
    lemma2 and theorem2 are A(DP)2SGD's closed forms; the second counts all workers'
    steps, and whose turn it is as a draw (A-05)."""
    delta: Annotated[float, Field(ge=0, lt=1)] = 1e-5
    """Delta that epsilon holds with."""
    budget: Annotated[float, Field(gt=0)] | None = None
    """Epsilon of a client, by the first accountant. The run ends just before a client
    would send a message that exceeds it. By default the budget of the noise, if it was
    calculated for one (`algorithm.mechanism.budget`)."""

    def named_parts(self) -> tuple[NamedPart, ...]:
        named = () if self.accountants == "auto" else self.accountants
        return tuple(accountant(name) for name in named)

    def names(self, algorithm: "Algorithm") -> tuple[str, ...]:
        """Returns the accountants of an algorithm's noise."""
        if self.accountants != "auto":
            return self.accountants
        noise = noise_of(algorithm)
        known = noise.calibrated
        first = (known.accountant,) if known and known.accountant else ()
        usual = AUTO[noise.noise_law == "gaussian"]
        return tuple(dict.fromkeys((*first, *usual)))


def check_privacy(scenario: "Scenario") -> None:
    """Refuses accounting that does not fit what is sent."""
    privacy, algorithm = scenario.privacy, scenario.algorithm
    asks, replays, noise = scenario.asks, scenario.replays, noise_of(algorithm)
    law, known = noise.noise_law, noise.calibrated
    if noise.noise_by_commit and asks:
        raise LocatedError(
            f"algorithm must have no noise of the server where the world asks for "
            f"{' and '.join(asks)}, which clients then tell without noise; let clients "
            f"add it, or remove what asks"
        )
    if known is not None:
        _check_calibrated(known, law, privacy, replays=replays)
    if privacy is None:
        return
    if law is None:
        kind = algorithm.kind
        stores = isinstance(algorithm, StoresEmbeddings)
        other = "perturbation" if stores else "mechanism"
        remedy = f"take audp or mapa, or give algorithm.{other}"
        if stores and algorithm.embedding_noise is not None:
            remedy = "its budget is algorithm.perturbation.releases"
        raise LocatedError(
            f"privacy must be left out where clients send no noisy gradients, got it "
            f"with the algorithm {kind!r}; {remedy}"
        )
    chosen = [accountant(name) for name in privacy.names(algorithm)]
    for part in chosen:
        _check_law(part.name, law, "privacy.accountants")
    for place, part in enumerate(chosen):
        other = "it as the first" if place == 0 else _is_no_cohort(scenario)
        if part.condition and other:
            raise LocatedError(
                f"privacy.accountants must have {part.name!r} only after another, for "
                f"noise of the server in rounds of a fixed number of clients that it "
                f"draws uniformly, got {other}; remove it"
            )
    if privacy.budget is not None and chosen[0].counts_all:
        raise LocatedError(
            f"privacy.accountants must begin with one that counts a client's own "
            f"messages where there is a budget, got {chosen[0].name!r}, which counts "
            f"all clients'; take rdp or lemma2 first"
        )
    if privacy.budget is not None and replays:
        raise LocatedError(
            f"privacy.budget must be left out where a timeline is replayed, got "
            f"{privacy.budget}; record one with the budget, which then ends by it"
        )


def _is_no_cohort(scenario: "Scenario") -> str:
    """Returns what keeps rounds from being fixed uniform draws of all clients."""
    clients, protocol = scenario.clients, scenario.protocol
    if not noise_of(scenario.algorithm).noise_by_commit:
        return "noise of clients"
    if scenario.replays:
        return "a replayed timeline"
    if clients is None or (drawn := clients.selection) is None:
        return "no clients.selection"
    if not isinstance(protocol.free_rule, LockStep):
        return f"the protocol {protocol.kind!r} with these options"
    for *_, part in clients.behaviours(scenario.num_clients):
        if part.comes_and_goes or part.loss:
            return "clients or messages that may be lost or away"
    if drawn.by != "uniform" or drawn.prefer or clients.local_steps_by:
        return "clients.selection.by, prefer or local_steps_by"
    return ""


def _check_law(name: str, law: str | None, key: str) -> None:
    assert law is not None
    if accountant(name).accounts_for(law):
        return
    fitting = [other for other in EXAMPLES if accountant(other).accounts_for(law)]
    raise LocatedError(
        f"{key} must account for {law} noise, got {name!r}; take "
        f"{', '.join(fitting[:-1])} or {fitting[-1]}",
        tuple(key.split(".")),
    )


def _check_calibrated(
    known: Calibrated, law: str | None, privacy: Privacy | None, *, replays: bool
) -> None:
    """Refuses a run that would exceed what its noise is calculated for."""
    keys = tuple(known.key.split("."))
    if known.accountant is not None:
        _check_law(known.accountant, law, f"{known.key}.accountant")
    if replays:
        raise LocatedError(
            f"{known.key} must be left out where a timeline is replayed, which ends as "
            f"it was recorded; give the noise itself",
            keys,
        )
    if privacy is None or privacy.budget is None or known.epsilon is None:
        return
    assert known.delta is not None
    if privacy.budget > known.epsilon or privacy.delta > known.delta:
        raise LocatedError(
            f"privacy.budget must be within {known.key}, epsilon {known.epsilon:g} at "
            f"delta {known.delta:g}, for which the noise is calculated, got "
            f"{privacy.budget:g} at {privacy.delta:g}; leave it out"
        )
