"""Small runs of protocols with algorithms, most of which ship in no scenario.

Those of extras are in `tests/extras/NAME/cases.py`; `tests.golden.every` has all.
"""

from typing import Any

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import own

EXPON = {"law": "expon"}
LINKS = {"upload": {"latency": EXPON, "bandwidth": 1e5}, "download": {"latency": EXPON}}
VERTICAL: dict[str, Any] = {
    "data": {"kind": "breast_cancer", "scale": "standard"},
    "partition": {"kind": "vertical", "parties": 4},
    "l2": 0.001,
}
HORIZONTAL: dict[str, Any] = {
    "data": {"kind": "digits"},
    "partition": {"kind": "dirichlet", "clients": 5, "alpha": 0.5},
    "l2": 0.001,
}
VAFL: dict[str, Any] = {
    "kind": "vafl",
    "step_size": 0.2,
    "batch": 17,
    "upload": "batch",
}
SGD: dict[str, Any] = {"kind": "sgd", "step_size": 0.3, "batch": 11}
PRIVATE: dict[str, Any] = {
    "mechanism": {"clip_bound": 1.0, "multiplier": 1.0},
}
CHAIN: dict[str, Any] = {
    "kind": "chained",
    "step_size": 0.1,
    "batch": 11,
    "chain": [
        {"kind": "local_work", "local_steps": 2},
        {"kind": "clip", "clip_bound": 1.0},
        {"kind": "compensate", "strength": 0.1},
        {"kind": "weigh", "weight": {"kind": "hinge"}, "weighting": "samples"},
        {"kind": "mean"},
        {"kind": "optimise", "optimizer": {"kind": "momentum"}},
        {"kind": "limit_by_staleness", "staleness_threshold": 1},
        {"kind": "step", "step_size": 0.2},
    ],
}
"""Stages that no named method has together."""
NOISE: dict[str, Any] = {"sigma": 1.0, "clip": "sample"}

PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {"kind": "asynchronous"},
    "rejecting": {"kind": "asynchronous", "staleness_bound": 2},
    "waiting": {"kind": "asynchronous", "staleness_bound": 2, "beyond": "wait"},
    "bounded": {"kind": "bounded", "staleness_bound": 3},
    "t_synchronous": {"kind": "t_synchronous", "t": 2},
    "synchronous": {"kind": "synchronous"},
    "deadline": {"kind": "synchronous", "deadline": 2.0},
    "over-selection": {"kind": "synchronous", "wait_for": 3},
    "buffered": {"kind": "buffered", "size": 3},
    "window": {"kind": "buffered", "window": 1.5},
    "grace": {"kind": "buffered", "grace": 0.5},
    "cyclic": {"kind": "cyclic"},
    "prescribed": {"kind": "prescribed", "most": 2},
    "bounded-buffer": {
        "kind": "buffered",
        "size": 2,
        "staleness_bound": 1,
        "beyond": "wait",
    },
    "rounds": {"kind": "rounds"},
    "sequential": {"kind": "rounds", "order": "sequential"},
    "pairwise": {"kind": "rounds", "exchange": "pairwise"},
    "gossip": {"kind": "gossip"},
    "gossip-during": {"kind": "gossip", "order": "during"},
    "gossip-ring": {
        "kind": "gossip",
        "graph": {"kind": "ring"},
        "order": "step_then_average",
    },
    "gossip-all": {"kind": "gossip", "average": "all"},
    "gossip-neighbours": {"kind": "gossip", "average": "neighbours"},
    "push": {
        "kind": "gossip",
        "average": "neighbours",
        "order": "step_then_average",
        "graph": {"kind": "exponential"},
    },
    "centralised": {"kind": "centralised"},
    "collect": {"kind": "collect", "count": 4, "late": "stop"},
    "trials": {"kind": "collect", "quota": 2, "allotted": 2.5},
    "means": {"kind": "collect", "harmonic_mean": 1.5},
    "stopping": {"kind": "asynchronous", "staleness_bound": 2, "beyond": "stop"},
    "warm": {"kind": "asynchronous", "warm_up": True},
    "phases": {"kind": "phases"},
    "restarting": {"kind": "asynchronous", "restarts": True},
    "allotted": {"kind": "collect", "allotment": {"jobs": 4, "spread": 0.1}},
    "routed": {"kind": "routed", "tasks": 4},
    "hierarchy": {"kind": "hierarchy", "edges": 2, "cloud": "asynchronous"},
    "pipeline": {"kind": "pipeline", "stages": 2},
}
WORKERS = ["test_accuracy", "consensus_distance", "worker_accuracy", "worker_loss"]


def case(
    protocol: str,
    problem: dict[str, Any],
    algorithm: dict[str, Any],
    clients: dict[str, Any] | None = None,
    metrics: list[str] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    world = {"compute": {"law": "gamma", "a": 2.0}} | LINKS
    if protocol.startswith(("gossip", "push")):
        world.pop("download")
    evaluate: dict[str, Any] = {"every": {"commits": 6}}
    if metrics:
        evaluate["metrics"] = metrics
    tree = {
        "name": "pin",
        "problem": problem,
        "clients": world | (clients or {}),
        "protocol": PROTOCOLS[protocol],
        "algorithm": algorithm,
        "stop": {"commits": 14},
        "evaluate": evaluate,
        "engine": {"chunk": 8},
    }
    return tree | rest


def _cases() -> dict[str, dict[str, Any]]:
    cases: dict[str, dict[str, Any]] = {}
    for protocol in ("bounded", "t_synchronous", "synchronous", "waiting", "rejecting"):
        cases[f"vafl {protocol}"] = case(protocol, VERTICAL, VAFL)
    everything = VAFL | {"upload": "all"}
    noisy = everything | {"perturbation": {"std": 0.3, "input_diameter": 2.0}}
    cases["vafl centralised"] = case("centralised", VERTICAL, VAFL)
    first = everything | {"client_order": "query_first"}
    cases["vafl all"] = case("asynchronous", VERTICAL, first)
    cases["vafl noise"] = case("bounded", VERTICAL, noisy)
    for kind in ("fed_sgd", "fed_bcd", "fed_pbcd"):
        algorithm = {"kind": kind, "step_size": 0.1, "batch": 17}
        algorithm |= {} if kind == "fed_sgd" else {"local_steps": 3}
        for protocol in ("rounds", "sequential", "pairwise", "asynchronous"):
            cases[f"{kind} {protocol}"] = case(protocol, VERTICAL, algorithm)
    algorithm = {"kind": "fed_bcd", "step_size": 0.1, "batch": 17, "local_steps": 2}
    cases["fed_bcd t_synchronous"] = case("t_synchronous", VERTICAL, algorithm)
    for protocol in (
        *("asynchronous", "rejecting", "waiting", "t_synchronous", "synchronous"),
        *("deadline", "over-selection", "cyclic", "centralised"),
    ):
        cases[f"sgd {protocol}"] = case(protocol, HORIZONTAL, SGD)
    for weight in ("polynomial", "hinge", "inverse", "delay_adaptive"):
        algorithm = SGD | {"weight": {"kind": weight}}
        cases[f"sgd {weight}"] = case("asynchronous", HORIZONTAL, algorithm)
    compensated = SGD | {"compensation": {"strength": 0.1, "adaptive": True}}
    cases["sgd compensated"] = case("asynchronous", HORIZONTAL, compensated)
    for optimizer in ("momentum", "adam", "yogi", "adagrad", "rmsprop"):
        algorithm = SGD | {"optimizer": {"kind": optimizer}}
        cases[f"sgd {optimizer}"] = case("t_synchronous", HORIZONTAL, algorithm)
    private = SGD | PRIVATE
    cases["sgd private"] = case("asynchronous", HORIZONTAL, private, privacy={})
    cases["sgd probe"] = case(
        *("asynchronous", HORIZONTAL, private),
        probe={"every": 2, "what": ["message", "gradient"]},
    )
    local = SGD | {"local_steps": 3, "sampling": "shuffled"}
    cases["sgd local"] = case(
        *("synchronous", HORIZONTAL, local), {"compute_per": "step"}
    )
    limited = {"accountants": ["rdp", "gdp"], "budget": 8.0}
    cases["sgd budget"] = case("asynchronous", HORIZONTAL, private, privacy=limited)
    fed = {"kind": "fed_async", "step_size": 0.1, "batch": 11, "local_steps": 2}
    cases["fed_async"] = case("asynchronous", HORIZONTAL, fed)
    cases["fed_async cyclic"] = case("cyclic", HORIZONTAL, fed)
    cases["fed_async prescribed"] = case("prescribed", HORIZONTAL, fed)
    buffered = fed | {"kind": "fed_buff"}
    cases["fed_buff"] = case("buffered", HORIZONTAL, buffered)
    cases["fed_buff window"] = case("window", HORIZONTAL, buffered)
    cases["fed_buff bounded"] = case("bounded-buffer", HORIZONTAL, buffered)
    averaging = {"kind": "fed_avg", "step_size": 0.1, "batch": 11, "local_epochs": 1}
    cases["fed_avg"] = case("synchronous", HORIZONTAL, averaging)
    against = {"scaffold": {}, "fed_nova": {}, "fed_dyn": {"proximal": 0.1}}
    for kind, own_options in against.items():
        method = averaging | {"kind": kind, **own_options}
        cases[kind] = case("synchronous", HORIZONTAL, method)
    turns = fed | {"kind": "streaming_diloco", "fragments": 3, "delay": 1}
    cases["streaming_diloco"] = case("synchronous", HORIZONTAL, turns)
    for protocol in ("collect", "trials", "stopping", "routed"):
        cases[f"sgd {protocol}"] = case(protocol, HORIZONTAL, SGD)
    deep = HORIZONTAL | {"model": {"kind": "dense", "hidden": [6, 5]}}
    pipelined = SGD | {"kind": "pipelined", "look_ahead": 0.5, "delay_power": 0.5}
    cases["pipelined"] = case("pipeline", deep, pipelined)
    levels = SGD | {"kind": "hierarchical", "local_steps": 2}
    cases["hierarchical"] = case("hierarchy", HORIZONTAL, levels)
    for kind, protocol in (
        *(("malenia", "means"), ("ringleader", "phases")),
        *(("ia2sgd", "warm"), ("ca2fl", "buffered")),
    ):
        cases[kind] = case(protocol, HORIZONTAL, SGD | {"kind": kind})
    repeats = SGD | {"weight": {"kind": "repeats", "base": 2.0}}
    cases["sgd restarting"] = case("restarting", HORIZONTAL, repeats)
    cases["sgd allotted"] = case("allotted", HORIZONTAL, SGD)
    delayed = {"kind": "delayed_nesterov", "period": 3, "spread": 0.1}
    ahead = {"optimizer": delayed | {"look_ahead": True}}
    diloco = SGD | ahead | {"local_steps": 4, "speeds": "1 / m"}
    cases["sgd diloco"] = case("grace", HORIZONTAL, diloco, {"compute_per": "step"})
    near = SGD | {"weight": {"kind": "distance", "largest": 0.3}}
    cases["sgd distance"] = case("asynchronous", HORIZONTAL, near)
    adaptive = {"kind": "amsgrad", "learning_rate": 0.6}
    fadas = buffered | {"optimizer": adaptive, "staleness_threshold": 1}
    cases["fed_buff threshold"] = case("buffered", HORIZONTAL, fadas)
    shares = SGD | {"weight": {"kind": "inverse_share"}}
    cases["sgd inverse_share"] = case("asynchronous", HORIZONTAL, shares)
    cases["chain"] = case("buffered", HORIZONTAL, CHAIN)
    for kind in ("asgd", "audp", "mapa"):
        algorithm = {"kind": kind} | ({} if kind == "asgd" else {"epsilon": 0.5})
        if kind == "audp":
            algorithm |= {"noise": "spherical_laplace", "clip": "sample"}
        privacy = {"privacy": {}} if kind == "audp" else {}
        for protocol in ("asynchronous", "cyclic"):
            cases[f"{kind} {protocol}"] = case(
                protocol, HORIZONTAL, algorithm, **privacy
            )
    cases["csgd"] = case("centralised", HORIZONTAL, {"kind": "csgd"})
    psgd = {"kind": "psgd", "step_size": 0.3, "batch": 11}
    for protocol in PROTOCOLS:
        if protocol.startswith("gossip"):
            cases[f"psgd {protocol}"] = case(
                protocol, HORIZONTAL, psgd, metrics=WORKERS
            )
    adp = psgd | {"kind": "adp2sgd", "noise": NOISE}
    named = {"accountants": ["rdp", "lemma2", "theorem2"]}
    cases["adp2sgd"] = case("gossip", HORIZONTAL, adp, privacy=named)
    cases["adp2sgd age"] = case(
        "gossip-ring", HORIZONTAL, adp | {"merge": "age"}, metrics=WORKERS
    )
    cases["adp2sgd all"] = case("gossip-all", HORIZONTAL, adp)
    cases["sgp"] = case("push", HORIZONTAL, psgd | {"kind": "sgp"}, metrics=WORKERS)
    harsh = {
        "groups": {
            "phones": {
                "number": 3,
                "availability": {"kind": "on_off", "on": EXPON, "off": EXPON},
                "loss": {"chance": 0.2, "timeout": 1.0},
            },
            "servers": {
                "number": 2,
                "crashes": {"after": {"law": "expon", "scale": 9}, "down": EXPON},
            },
        },
        "slowdowns": [{"kind": "random", "factor": 2}],
    }
    for protocol in ("asynchronous", "rejecting", "deadline"):
        cases[f"harsh {protocol}"] = case(protocol, HORIZONTAL, SGD, harsh)
    selection = {"selection": {"in_flight": 2}}
    cases["selection"] = case("asynchronous", HORIZONTAL, SGD, selection)
    cases["service"] = case(
        *("asynchronous", HORIZONTAL, SGD), server={"service": EXPON}
    )
    core = [part for part in own("algorithms") if ".extras." not in part.__module__]
    for part in core:  # those that nothing more need be said of
        kind, pinned = tag(part), {case["algorithm"]["kind"] for case in cases.values()}
        if kind not in pinned:
            problem, usual = {
                "vertical": (VERTICAL, VAFL),
                "horizontal": (HORIZONTAL, SGD),
            }[part.family]
            plain = {"kind": kind, "step_size": 0.1, "batch": usual["batch"]}
            cases[kind] = case(part.protocols[0], problem, plain)
    return cases


CASES = _cases()
