"""Routed: tasks are sent to clients, and wait in their queues."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from ...config.base import LocatedError, Quantity
from ...config.expressions import per_client
from ...recorders.recorder import Recorder
from ...world.clients import Clients, Server
from ...world.world import World
from ..base import Cadence, Protocol, refuse_selection
from .playing import Routes, Tasks
from .recorder import QueueRecorder


class Routed(Protocol):
    """A fixed number of tasks is in flight; each waits in the queue of its client.

    A client does its tasks in the order of their coming, one at a time. When a task is
    done its contribution is applied, and another task is sent out with the new model.

    Source: Leconte et al., Queueing Dynamics of Asynchronous Federated Learning (2024),
    Algorithm 1; `route`: Islamov, Safaryan and Alistarh, AsGrad (2023), section 3.
    """

    kind: Literal["routed"] = "routed"
    records: ClassVar[type[Recorder]] = QueueRecorder
    tasks: Annotated[int, Field(ge=1)]
    """Tasks in flight, waiting ones included."""
    route: Literal["random", "shuffled", "back"] = "random"
    """Client of the next task: drawn by `weights`; the next one of a random order of
    all, a new one after each pass; or the client whose task is done."""
    weights: Quantity = 1
    """`random`: chances of the clients, up to a common factor."""
    reads: Literal["routing", "service"] = "routing"
    """When a task reads the model: when it is sent out, or when its client begins."""

    def described(self, num_clients: int) -> dict[str, Any]:
        early = self.reads == "routing"
        known = {"closed_network": {"reads_early": early}}
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients and {self.tasks} tasks in flight, of "
            f"which a client does one after the other",
            "queues": ["tasks at each client, first in, first out"],
            "queues_jobs": early,
            "closed_forms": known if self.route == "random" else {},
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=1, num_registers=self.tasks + 1)

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_selection(self.kind, clients)
        self.shares(n)

    def chances(self, num_clients: int) -> Sequence[float] | None:
        if self.route == "back":
            return None
        even = [1 / num_clients] * num_clients
        return self.shares(num_clients).tolist() if self.route == "random" else even

    def shares(self, num_clients: int) -> Float[np.ndarray, " K"]:
        """Returns the chance of each client, p_i.

        Raises:
            LocatedError: They are negative or all zero.
        """
        weights = per_client(self.weights, num_clients, "protocol.weights")
        found = np.array([float(weight) for weight in weights])
        if not (np.isfinite(found).all() and found.min() >= 0 and found.sum() > 0):
            raise LocatedError(
                f"protocol.weights must be >= 0 and not all 0, got {found.min():g}; "
                "change them",
                ("protocol", "weights"),
            )
        return found / found.sum()

    def play(self, world: World, recorder: QueueRecorder) -> None:
        """Sends out the first tasks at time 0, in order of their numbers.

        What is done is applied first; then the next task is sent out and put in its
        queue, and clients that have something to do begin. A task that is lost is
        replaced by another one.

        Source: Leconte et al. (2024), Algorithm 1.
        """
        shares = self.shares(world.num_clients)
        routes = Routes(self.route, shares, world.streams)
        Tasks(
            self.tasks, routes, world, recorder, early=self.reads == "routing"
        ).start()
