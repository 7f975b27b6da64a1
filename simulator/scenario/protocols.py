"""Coordination protocols: who talks to whom when. None knows an algorithm."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.scenario.base import Config, PlacedError
from simulator.scenario.clients import Behaviour, Clients, Server
from simulator.scenario.graphs import (
    Bipartite,
    Draw,
    Graph,
    check_graph,
    check_size,
)
from simulator.scenario.laws import Constant, Law
from simulator.scenario.mixing import is_directed, receivers

LIKE = ("asynchronous", "t_synchronous", "synchronous", "buffered")
"""Protocols that one of somebody else's may be like, as its class says in `like`."""


def rows_of(protocol: Any) -> str:
    """Returns the kind of the protocol whose rows a protocol makes: mostly its own.

    A protocol that others bring says in `like` which of `LIKE` it is like: which
    algorithms run on it, and who takes part in a row (one client; `t`; everyone; one,
    into a buffer).
    """
    return getattr(protocol, "like", None) or getattr(protocol, "kind", "")


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


class Buffered(Config):
    """Contributions gather in the server's buffer, and are applied together.

    Clients do not wait: each goes on as soon as its contribution is in the buffer.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithm 1.
    """

    kind: Literal["buffered"] = "buffered"
    size: Annotated[int, Field(ge=1)] | None = None
    """Contributions with which the buffer is applied."""
    window: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which it is applied, where anything is in it."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Buffered":
        if (self.size is None) == (self.window is None):
            raise ValueError(
                "must have exactly one of size and window; write for example size: 10"
            )
        return self


class Cyclic(Config):
    """Clients commit one after the other, always in the same order.

    Each applies what it computed on the model of its previous turn. The steps alone
    take time; the clients' own laws play no part.

    Source: MAPA, section 8 (cyclic delayed method); decision M-08.
    """

    kind: Literal["cyclic"] = "cyclic"
    step: Law = Constant(value=1)
    """Law of the duration of one step, virtual seconds."""
    lag: Literal["K-1", "K"] = "K-1"
    """Staleness from the second turn on: a client takes away the model with its own
    update, or the one just before it."""

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses what turns cannot do."""
        del server, n
        _refuse_selection(self.kind, clients)


class Rounds(Config):
    """An exchange between all parties, then local steps, round after round.

    How many local steps there are is the algorithm's matter; `clients.compute_per:
    step` makes them take their time one by one. The last party holds the labels; where
    its messages to itself take no time, it is a group of clients without links.

    Source: FedBCD, Algorithms 2 and 3.
    """

    kind: Literal["rounds"] = "rounds"
    order: Literal["parallel", "sequential"] = "parallel"
    """All parties at once, or one after the other, each with what those before it left
    (FedBCD-p, FedBCD-s)."""
    exchange: Literal["star", "pairwise"] = "star"
    """Every party with the one that holds the labels, or with every other."""

    def messages_per_exchange(self, num_parties: int) -> int:
        """Returns how many messages an exchange between all parties takes.

        Source: FedBCD, section 3: 2 (K - 1) or K^2 - K.
        """
        others = num_parties - 1
        return 2 * others if self.exchange == "star" else num_parties * others

    def messages_per_round(self, num_parties: int) -> tuple[int, int]:
        """Returns how many messages of a round are embeddings, and how many replies."""
        of_parties = [self.messages_of(m, num_parties) for m in range(num_parties)]
        embeddings, replies = zip(*of_parties, strict=True)
        return sum(embeddings), sum(replies)

    def messages_of(self, party: int, num_parties: int) -> tuple[int, int]:
        """Returns how many embeddings a party sends in a round, and gets in reply.

        In a star, the last party sends itself nothing. In sequence, what all parties
        hold of a new batch is sent before the first one moves (F-02), and that
        exchange needs no replies; those of single parties amount to one of all.
        """
        times = 2 if self.order == "sequential" else 1
        if self.exchange == "pairwise":
            return times * (num_parties - 1), 0
        return (0, 0) if party == num_parties - 1 else (times, 1)

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses what rounds cannot do."""
        del server, n
        _refuse_selection(self.kind, clients)


class Gossip(Config):
    """Workers without a server: each steps by itself and averages with a neighbour.

    An averaging takes the time of its initiator's upload link; both its workers go on
    computing meanwhile, on the models that they had read.

    Source: A(DP)2SGD, Algorithm 1 and appendix A; decisions A-08, A-09 and A-10.
    """

    kind: Literal["gossip"] = "gossip"
    graph: Graph = Bipartite()
    """Who may average with whom; by default senders with receivers (A-08)."""
    average: Literal["pairwise", "all", "neighbours"] = "pairwise"
    """Two neighbours at a time; or, in rounds in which all wait for each other,
    everyone with everyone (SYNC) or with all neighbours at once (D-PSGD)."""
    initiator: Literal["sender", "every"] | None = None
    """Whose gradients come with an averaging (A-09): those of one side of a bipartite
    graph or everyone's; by default senders', where the graph has two sides."""
    order: Literal["average_then_step", "step_then_average", "during"] = (
        "average_then_step"
    )
    """What follows a gradient (A-10); `during`: averaging begins with the gradient, and
    both are waited for. With everyone, steps come first."""

    @model_validator(mode="after")
    def _only_pairs_have_neighbours(self) -> "Gossip":
        belong = {
            "graph": ("pairwise", "neighbours"),
            "initiator": ("pairwise",),
            "order": ("pairwise", "neighbours"),
        }
        for name, averages in belong.items():
            default = type(self).model_fields[name].default
            if self.average not in averages and getattr(self, name) != default:
                raise PlacedError(
                    f"{name} must not stand beside average: {self.average}; remove it",
                    (name,),
                )
        if self.average == "neighbours" and self.order == "during":
            raise PlacedError(
                "order must be average_then_step or step_then_average where all "
                "neighbours average at once, got 'during'; change it",
                ("order",),
            )
        if self.average == "pairwise" and is_directed(self.graph):
            raise PlacedError(
                f"graph must not be directed for pairwise averaging, got "
                f"{self.graph.kind!r}; take average: neighbours",
                ("graph", "kind"),
            )
        return self

    @property
    def in_rounds(self) -> bool:
        """Whether all workers wait for each other."""
        return self.average != "pairwise"

    def num_out(self, num_workers: int, draw: Draw | None = None) -> list[int]:
        """Returns how many messages each worker sends in a round with its neighbours.

        Args:
            num_workers: K.
            draw: random numbers, for random graphs.
        """
        first = receivers(self.graph, num_workers, draw)[0]
        return [len(others) for others in first]

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses what workers without a server cannot do, and impossible graphs."""
        _refuse_selection(self.kind, clients)
        if server != Server():
            raise PlacedError(
                "server must not be set for the protocol 'gossip', which has none; "
                "remove it",
                ("server",),
            )
        for part in (clients, *clients.groups.values()) if clients else ():
            _refuse_absence(part)
        check_size(n, mixed=self.in_rounds)
        if self.average != "all":
            check_graph(self.graph, n, must_have_sides=self.initiator == "sender")
        if is_directed(self.graph):
            receivers(self.graph, n)


def _refuse_absence(behaviour: Behaviour) -> None:
    for name in ("availability", "join", "leave", "crashes", "loss", "download"):
        if getattr(behaviour, name) != Behaviour.model_fields[name].default:
            raise PlacedError(
                f"clients.{name} must not be set for the protocol 'gossip', whose "
                f"workers are always there and have no link but upload; remove it",
                ("clients", name),
            )


def _refuse_selection(kind: str, clients: Clients | None) -> None:
    if clients is not None and clients.selection is not None:
        raise PlacedError(
            f"clients.selection must not be set for the protocol {kind!r}, in which "
            f"everyone works; remove it",
            ("clients", "selection"),
        )
