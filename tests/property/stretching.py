"""The same world with all of its times multiplied by a factor."""

from dataclasses import replace
from typing import Any

from stalesim.simulator.catalogue.protocols.schedules import CountSchedule
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.availability import OnOff, Periodic
from stalesim.simulator.world.clients import (
    Behaviour,
    Clients,
    Crashes,
    Group,
    Link,
    Loss,
    OpenArrivals,
    Power,
    Rates,
    Selection,
    Server,
)
from stalesim.simulator.world.laws.scaled import Scaled
from stalesim.simulator.world.slowdowns import RegimeSlowdown

TIMES = ("deadline", "timeout", "window", "grace", "seconds")
"""Entries of protocols that are virtual seconds."""


PARTS = (
    *("upload", "download", "availability", "crashes", "loss", "power", "watts"),
    "selection",
)
"""Entries of clients that have virtual seconds in them."""


def stretched(plan: SimulatedTimeline, factor: float) -> SimulatedTimeline:
    """Returns a timeline's plan, in which everything takes `factor` times as long."""

    def law(given: Any) -> Any:
        return None if given is None else Scaled(of=given, scale=factor)

    def moment(given: Any) -> Any:
        return given if given in (None, 0) else f"{factor!r}*({given})"  # 0 keeps ticks

    def per_second(given: Any) -> Any:
        return None if given is None else f"({given})/{factor!r}"

    def part(given: Any) -> Any:
        match given:
            case Link():
                return Link(
                    latency=law(given.latency), bandwidth=per_second(given.bandwidth)
                )
            case OnOff():
                return OnOff(on=law(given.on), off=law(given.off))
            case Periodic():
                return Periodic(
                    period=factor * given.period,
                    on=given.on,
                    phase=moment(given.phase),
                )
            case Crashes():
                return Crashes(after=law(given.after), down=law(given.down))
            case Power():
                times = tuple(factor * time for time in given.times)
                period = given.period and factor * given.period
                more = {"times": times, "period": period, "phase": moment(given.phase)}
                return given.model_copy(update=more)
            case Rates():
                each = {k: v if "byte" in k else per_second(v) for k, v in given}
                return Rates(**each)
            case Selection(arrivals=OpenArrivals()):
                gap = law(given.arrivals.gap)
                arrivals = given.arrivals.model_copy(update={"gap": gap})
                return given.model_copy(update={"arrivals": arrivals})
            case CountSchedule(seconds=tuple()):
                seconds = tuple(factor * second for second in given.seconds)
                return CountSchedule(values=given.values, seconds=seconds)
            case Loss():
                return given.model_copy(update={"timeout": factor * given.timeout})
            case RegimeSlowdown():
                return RegimeSlowdown(
                    factor=given.factor, normal=law(given.normal), slow=law(given.slow)
                )
        return given

    entries = {
        **dict.fromkeys(("idle", "read", "compute"), law),
        **dict.fromkeys(("join", "leave"), moment),
        **dict.fromkeys(PARTS, part),
    }

    def behaviour(given: Behaviour) -> dict[str, Any]:
        own = {name: getattr(given, name) for name in given.model_fields_set}
        return {name: entries.get(name, lambda v: v)(v) for name, v in own.items()}

    clients = plan.clients
    if clients is not None:
        tree = behaviour(clients)
        tree["groups"] = {
            name: Group(**behaviour(group)) for name, group in clients.groups.items()
        }
        tree["slowdowns"] = tuple(part(one) for one in clients.slowdowns)
        clients = Clients(**tree)
    protocol, given = plan.protocol, plan.protocol.model_dump()
    times = {name: factor * given[name] for name in TIMES if given.get(name)}
    if hasattr(protocol, "step"):
        times["step"] = law(protocol.step)
    if hasattr(protocol, "size"):
        times["size"] = part(protocol.size)
    server, stop = plan.server, plan.stop
    slower = {
        way: bandwidth / factor
        for way in ("upload_bandwidth", "download_bandwidth")
        if (bandwidth := getattr(server, way)) is not None
    }
    return replace(
        plan,
        clients=clients,
        protocol=protocol.model_copy(update=times),
        server=Server(service=law(server.service), **slower),
        stop=stop.model_copy(update={"time": stop.time and factor * stop.time}),
        workload=replace(plan.workload, overhead_s=factor * plan.workload.overhead_s),
    )
