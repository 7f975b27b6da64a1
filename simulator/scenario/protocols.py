"""Coordination protocols: who talks to whom when. None knows an algorithm."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.scenario.base import Config
from simulator.scenario.laws import Constant, Law


class Asynchronous(Config):
    """Each client's contribution is applied when it arrives, in order of arrival.

    With a staleness bound, no contribution is applied that is staler: it is rejected
    and its client begins anew, or arrivals wait for those jobs that they would make too
    stale (stale-synchronous, Ho et al., 2013).
    """

    kind: Literal["asynchronous"] = "asynchronous"
    staleness_bound: Annotated[int, Field(ge=0)] | None = None
    """Largest staleness of a contribution, in commits (inclusive)."""
    beyond: Literal["reject", "wait"] = "reject"
    """What happens to arrivals beyond the bound."""


class Bounded(Config):
    """Asynchronous, with stored embeddings older than a bound refreshed before use.

    Source: VAFL, section 4 (bounded delay); decisions V-10.
    """

    kind: Literal["bounded"] = "bounded"
    staleness_bound: Annotated[int, Field(ge=1)]
    """Largest age of a stored embedding that may be used, in commits (inclusive)."""


class TSynchronous(Config):
    """The server waits for the first `t` distinct arrivals, then answers all of them.

    Source: VAFL, Algorithm 2.
    """

    kind: Literal["t_synchronous"] = "t_synchronous"
    t: Annotated[int, Field(ge=1)]


class Synchronous(Config):
    """The server waits for everyone; a round lasts as long as its slowest client.

    With `clients.selection`, each round asks as many clients as that has in flight.
    """

    kind: Literal["synchronous"] = "synchronous"
    deadline: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which a round ends with those who have arrived."""
    wait_for: Annotated[int, Field(ge=1)] | None = None
    """Arrivals with which a round ends, where more are asked (over-selection)."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which the server gives up a client that has left."""


class Centralised(Config):
    """Steps on pooled data, without clients."""

    kind: Literal["centralised"] = "centralised"
    step: Law = Constant(value=1)
    """Law of the duration of one step, virtual seconds."""
