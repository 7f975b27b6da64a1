"""Capabilities of protocols: answers of some beyond those of all.

A protocol inherits from those that it has. Others ask for a capability, never for a
protocol: `isinstance(protocol, OwnSteps)`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from ..timelines.simulated import SimulatedTimeline
    from .laws.base import Law
    from .protocol import Batch
    from .recorders.recorder import Recorder
    from .world import World

Draw = Callable[[int], np.random.Generator]
"""Random numbers of a run, by the number of an attempt."""


class MixesModels:
    """A protocol in which workers may average their models all at once."""

    def uploads_per_mixing(self, num_workers: int, draw: Draw) -> int:
        """Returns how many messages an averaging of all workers takes."""
        raise NotImplementedError

    def mixing(
        self,
        num_workers: int,
        draw: Draw,
        *,
        pushes: bool,
    ) -> Float[np.ndarray, "Q K K"] | None:
        """Returns the matrices by which models are averaged, in turn.

        None where no more than two models are averaged at a time. With `pushes`, models
        are shared out as in push-sum.
        """
        raise NotImplementedError


class RefreshesEmbeddings:
    """A protocol that has embeddings uploaded again when they are too old."""

    @property
    def refresh_bound(self) -> int:
        """Age in commits beyond which stored embeddings are refreshed."""
        raise NotImplementedError

    def recorder(
        self, world: "World", width: int, batch: "Batch | None", num_samples: int
    ) -> "Recorder":
        """Returns a recorder that has the samples of each job.

        Args:
            world: World that is played.
            width: Most workers of a row.
            batch: Sample ids of (client, job); None where an upload carries all.
            num_samples: Number of samples that the batch is chosen from.
        """
        raise NotImplementedError


class DrawsClients:
    """A protocol that draws the clients of its tasks."""

    def chances(self, num_clients: int) -> Sequence[float] | None:
        """Returns each client's chance of a task; None if none is drawn."""
        raise NotImplementedError


class LimitsGathering:
    """A protocol whose commits apply a limited number of contributions that gather."""

    def most_gathered(self, num_clients: int) -> int | None:
        """Returns the most contributions that gather; None without a limit."""
        raise NotImplementedError

    def fewest_gathered(self, num_clients: int) -> int | None:
        """Returns the fewest contributions that make a commit, as `most_gathered`."""
        raise NotImplementedError


class CountsMessages:
    """A protocol whose jobs send and get other numbers of messages than one."""

    def messages_per_job(self, num_clients: int) -> Int[np.ndarray, "K 2"]:
        """Returns how many messages a job of each client sends and gets."""
        raise NotImplementedError


class Remarked:
    """A protocol with options that are allowed, but may be meant otherwise."""

    def remarks(self, in_flight: int) -> Iterator[str]:
        """Yields lines for the author; `in_flight` is as in `Protocol.cadence`."""
        raise NotImplementedError


class OwnSteps:
    """A protocol with its own durations of steps; clients' laws are not used."""

    if TYPE_CHECKING:
        step: "Law"
        """Law of the duration of a step, virtual seconds."""


class OwnTimeline:
    """A protocol that plays no cycles of clients, but makes its timelines itself."""

    @property
    def num_workers(self) -> int:
        """Number of workers in rows."""
        raise NotImplementedError

    def timeline(self) -> "type[SimulatedTimeline]":
        """Imports and returns the kind of its timelines, a `SimulatedTimeline`."""
        raise NotImplementedError
