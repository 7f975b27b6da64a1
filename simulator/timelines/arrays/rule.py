"""The rule that says whether a world is free of feedback on who acts when."""

from ...parts.parts import tag
from ...world.clients import Clients, Server
from ...world.protocol import LockStep, Protocol, Rule

MANY = 32
"""Clients from which on arrays are faster, where all make one job at a time."""


def free_rule(protocol: Protocol) -> Rule | None:
    """Returns what a protocol does where nothing feeds back; None where something does.

    A protocol that inherits from another and plays otherwise has a rule of its own, or
    none.
    """
    for kind in type(protocol).__mro__:
        own = vars(kind)
        if "free_rule" in own:
            return protocol.free_rule
        if "play" in own or "recorder" in own:
            return None
    return None


def feedback(
    protocol: Protocol,
    clients: Clients | None,
    server: Server,
    num_clients: int,
    *,
    limited: bool,
) -> str:
    """Returns why a world is played by SimPy, in a few words; empty if it is not.

    Mostly it is what feeds back on who acts when.

    A world without feedback is one in which each client's times follow from its own
    draws: any number of stages, links that are not shared, losses with repeats,
    slowdowns, groups and local steps.

    Args:
        protocol: The protocol.
        clients: Its clients; None where data are pooled.
        server: Resources that they share.
        num_clients: Number of clients.
        limited: Whether the number of messages of a client is limited.
    """
    if free_rule(protocol) is None:
        return f"the protocol {tag(type(protocol))}"
    if limited:
        return "a privacy budget, which ends the run when a client has spent it"
    if server.queues:
        return "the server's queue"
    if server.upload_bandwidth is not None or server.download_bandwidth is not None:
        return "a link that clients share"
    if clients is None:
        return ""
    if clients.vary_steps:
        return "local steps that change"
    if clients.selection is not None:
        return "a selection of clients"
    if not all(slow.in_arrays for slow in clients.slowdowns):
        return "a slowdown that is worked out job by job"
    behaviours = [each for _, _, each in clients.behaviours(num_clients)]
    if any(behaviour.power is not None for behaviour in behaviours):
        return "computing power that changes over time"
    if any(behaviour.comes_and_goes for behaviour in behaviours):
        return "clients that come and go"
    slow = any(slow.of_moments for slow in clients.slowdowns)
    if isinstance(free_rule(protocol), LockStep):
        if slow or any(behaviour.loss is not None for behaviour in behaviours):
            return "rounds of clients who are slow at times, or lose messages"
    elif slow and num_clients < MANY:
        return f"fewer than {MANY} clients that are slow at times"
    return ""
