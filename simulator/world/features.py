"""The features of a world, by the entries of its scenario."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..files.job_steps import JobSteps
from .clients import Clients, Server
from .cycle import Feature
from .laws.base import AnyLaw
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World


def shared_laws(
    clients: Clients | None, server: Server, step: AnyLaw | None
) -> dict[Purpose, AnyLaw]:
    """Returns laws of stages that are not those of groups; `step` has no clients."""
    pauses, selection = server.evaluation, clients.selection if clients else None
    opened = selection and selection.arrivals
    found = {
        Purpose.STEP: step,
        Purpose.SERVICE: server.service,
        Purpose.EVALUATION: pauses and pauses.takes,
        Purpose.ARRIVAL: opened and opened.gap,
    }
    return {purpose: law for purpose, law in found.items() if law is not None}


def features(
    world: "World",
    clients: Clients | None,
    server: Server,
    job_steps: JobSteps | None,
) -> Iterator[Feature]:
    """Yields the features of a world, those that act first before the others."""
    configs = [group.config for group in world.groups]
    slowdowns = clients.slowdowns if clients else ()
    if job_steps is not None:
        from .local_steps import GivenSteps

        yield GivenSteps(world, job_steps)
    if any(config.upload or config.download for config in configs):
        from .links import OwnLinks

        yield OwnLinks(world)
    by_job = all(config.compute_per == "job" for config in configs)
    if slowdowns or world.workload.overhead_s or not by_job:
        from .slowdowns import ClientPace

        yield ClientPace(world, slowdowns, gives_steps=job_steps is not None)
    if any(config.power for config in configs):
        from .power import ComputingPower

        yield ComputingPower(world.groups)
    if any(config.comes_and_goes for config in configs):
        from .presence import Presences

        yield Presences(world.groups)
    if any(config.loss for config in configs):
        from .faults import Losses

        yield Losses(world)
    if server.queues:
        from .links import Queue

        yield Queue(world, server)
    for way, bandwidth in (
        (Purpose.UPLOAD, server.upload_bandwidth),
        (Purpose.DOWNLOAD, server.download_bandwidth),
    ):
        if bandwidth is not None:
            from .links import SharedLink

            yield SharedLink(world, way, bandwidth)
