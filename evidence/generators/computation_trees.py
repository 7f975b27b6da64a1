"""The figure of computation trees: main branches of four methods, and their threads."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import NO_WORKER, Kind
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.protocol import Protocol
from stalesim.simulator.world.workload import Workload

TIMES = [1, 1.3, 2.1, 4]
NODES = 12
METHODS = {
    "ASGD": Asynchronous(),
    "Ringmaster, R = 3": Asynchronous(staleness_bound=2, beyond="stop"),
    "Rennala, S = 4": Collect(count=4, late="stop"),
    "Synchronous": Synchronous(),
}
SIZE = (7.16, 3.2)


class Thread(NamedTuple):
    """One contribution of a computation tree.

    Attributes:
        client: Its client, from 0.
        read: Node of the main branch at which its gradient was taken.
        applied: Node of the main branch that its step leads to, from 1.
    """

    client: int
    read: int
    applied: int


def threads(protocol: Protocol, nodes: int = NODES) -> list[Thread]:
    """Returns the first contributions that a protocol applies, one by one.

    Args:
        protocol: Protocol; the clients need `TIMES` seconds.
        nodes: Number of contributions.
    """
    clients = Clients.model_validate({"compute": {"law": "constant", "value": TIMES}})
    timeline = SimulatedTimeline(
        clients, protocol, len(TIMES), 1, Stop(time=60.0), Workload(4, 4, 1)
    )
    rows = [chunk.rows for chunk in timeline.chunks(4096)]
    workers, kinds, versions = (
        np.concatenate([getattr(row, name) for row in rows])
        for name in ("worker", "kind", "read_version")
    )
    first_node, found = [0], []  # node of each version
    for who, kind, version in zip(workers, kinds, versions, strict=True):
        for client, own in zip(who, version, strict=True):
            if client != NO_WORKER:
                found.append(Thread(int(client), first_node[own], len(found) + 1))
        if kind == Kind.COMMIT:
            first_node.append(len(found))
    return found[:nodes]


def draw(folder: Path) -> None:
    """Draws the figure.

    Args:
        folder: Folder of the figures.
    """
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
        for axes, (title, protocol) in zip(panels, METHODS.items(), strict=True):
            _draw(axes, title, threads(protocol))
        for client, (time, colour) in enumerate(
            zip(TIMES, style.palette(), strict=False)
        ):
            label = f"client {client + 1}, {time:g} s"
            panels[0].plot([], [], c=colour, label=label)
        lines = panels[0].get_legend_handles_labels()
        figure.legend(*lines, loc="outside lower center", ncols=len(TIMES))
        save_figure(figure, folder / "computation-trees")


def _draw(axes: Axes, title: str, found: list[Thread]) -> None:
    longest = max(one.applied - 1 - one.read for one in found)
    axes.set_title(f"{title}: back by {longest} at most")
    axes.plot(range(len(found) + 1), np.zeros(len(found) + 1), "k.-", lw=1, zorder=3)
    for one in found:
        axes.add_patch(
            FancyArrowPatch(
                (one.read, 0),
                (one.applied - 0.5, 0),
                connectionstyle="arc3,rad=-0.45",
                arrowstyle="-|>",
                mutation_scale=7,
                color=style.palette()[one.client],
                lw=1,
            )
        )
    axes.set(xlim=(-0.5, NODES + 0.5), ylim=(-0.4, 2.2), yticks=[])
    axes.set_xticks(range(0, NODES + 1, 2))
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
