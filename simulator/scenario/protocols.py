"""Coordination protocols: who talks to whom when. None knows an algorithm."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.scenario.base import Config
from simulator.scenario.laws import Constant, Law


class Asynchronous(Config):
    """Each client's contribution is applied when it arrives, in order of arrival."""

    kind: Literal["asynchronous"] = "asynchronous"


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
    """The server waits for everyone; a round lasts as long as its slowest client."""

    kind: Literal["synchronous"] = "synchronous"


class Centralised(Config):
    """Steps on pooled data, without clients."""

    kind: Literal["centralised"] = "centralised"
    step: Law = Constant(value=1)
    """Law of the duration of one step, virtual seconds."""
