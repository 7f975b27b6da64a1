"""Worlds at random, one per seed, in which everything that may happen does happen."""

from typing import Any

import numpy as np

from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario

Tree = dict[str, Any]
PROTOCOLS = (
    *("asynchronous", "bounded", "buffered", "synchronous", "t_synchronous"),
    *("collect", "phases", "routed", "rounds", "cyclic", "centralised", "pipeline"),
    *("gossip", "push_gossip", "hierarchy"),
)
"""Kinds of protocols; `bounded` is asynchronous with a bound on staleness."""
UNSERVED = ("gossip", "push_gossip", "hierarchy", "cyclic")
"""Protocols without the server's queue and links."""
POOLED = ("centralised", "pipeline")
ORDERS = ("average_then_step", "step_then_average", "during")
STEPPED = ("cyclic", *POOLED)
"""Protocols whose time is that of steps, and no client's."""
EVERYONE = ("rounds", "phases", "routed", "collect", *UNSERVED, *POOLED)
"""Protocols that select no clients."""
SHOWN = ("asynchronous", "bounded", "buffered", "synchronous", "t_synchronous")
"""Protocols in which clients may come, go, crash and lose messages."""


class Dice:
    """Random choices of one seed."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def number(self, low: float, high: float) -> float:
        return float(np.round(self.rng.uniform(low, high), 3))


def law(dice: Dice, scale: float = 1.0) -> Tree:
    """Returns a law of durations of about a mean."""
    return dice.one(
        {"law": "constant", "value": scale},
        {"law": "expon", "scale": scale},
        {"law": "gamma", "a": 2.0, "scale": scale / 2},
        {"law": "lognorm", "s": 0.8, "scale": scale},
        {"law": "uniform", "loc": scale / 2, "scale": scale},
        {"law": "geom", "p": 0.5, "scale": scale / 2},
        {"law": "expon", "scale": f"{scale / 2}*m"},
    )


def behaviour(dice: Dice, kind: str) -> Tree:
    """Returns what a group of clients does."""
    found: Tree = {"compute": law(dice)}
    if kind == "push_gossip":
        found["idle"] = law(dice)
    elif dice.chance(0.2) and kind not in ("rounds", "hierarchy"):
        found["idle"] = law(dice, 0.3)
    if dice.chance(0.2) and kind in SHOWN:
        found["read"] = law(dice, 0.5)
    for way in ("upload", "download"):
        one_way = kind in ("gossip", "push_gossip", "routed") and way == "download"
        if dice.chance(0.5) and not one_way:
            found[way] = {"latency": law(dice, 0.2)}
            if dice.chance(0.5):
                found[way]["bandwidth"] = dice.one(1000, "500*m")
    if kind in SHOWN or kind == "collect":
        if dice.chance(0.25):
            chance, retries = dice.one(0.1, 0.4, 0.8), dice.one(0, 1, 3)
            found["loss"] = {
                "chance": chance,
                "timeout": 0.4,
                "retries": retries,
                "duplicates": dice.one(0.0, 0.4),
            }
        if dice.chance(0.25):
            down = law(dice, 0.5)
            found["crashes"] = {"after": {"law": "expon", "scale": 9.0}, "down": down}
        if dice.chance(0.25):
            found["availability"] = dice.one(
                {"kind": "on_off", "on": law(dice, 5), "off": law(dice, 1)},
                {"kind": "periodic", "period": 10, "on": 0.6, "phase": "m"},
            )
        if dice.chance(0.2):
            found["join"] = dice.one(1.5, "m")
        if dice.chance(0.2):
            found["leave"] = dice.one(20, "15*m")
    if dice.chance(0.1) and kind not in STEPPED:
        found["power"] = {"times": [0.0, 5.0], "values": [1.0, 0.5], "period": 10.0}
    return found


def rates(dice: Dice, kind: str) -> Tree:
    """Returns what clients draw, where the protocol may count it."""
    if kind in UNSERVED or kind in POOLED or kind == "rounds" or dice.chance(0.5):
        return {}
    watts = {"idle": 0.5, "compute": dice.number(1, 5), "upload": 2.0}
    return {"watts": watts | {"upload_byte": 1e-5, "download_byte": 2e-5}}


def protocol(dice: Dice, kind: str, n: int) -> Tree:
    """Returns a protocol with options of its own, for some clients."""
    rounds = int(dice.rng.integers(1, n + 1))
    options: dict[str, Any] = {
        "asynchronous": lambda: dice.one({}, {}, {"warm_up": True}, {"restarts": True}),
        "bounded": lambda: {
            "staleness_bound": dice.one(0, 1, 2, 4),
            "beyond": dice.one("reject", "stop", "wait"),
        },
        "buffered": lambda: dice.one(
            {"size": rounds},
            {"size": {"values": [1, rounds], "seconds": [10.0]}},
            {"window": 2.5},
            {"grace": 0.5},
        ),
        "synchronous": lambda: dice.one(
            {},
            {"deadline": 4.0},
            {"timeout": 3.0},
            {"wait_for": rounds},
            {"wait_for": rounds, "late": dice.one("stop", "reject")},
            {"wait_for": rounds, "deadline": 4.0, "late": "reject"},
        ),
        "t_synchronous": lambda: {"t": rounds},
        "collect": lambda: dice.one(
            {"count": rounds + 1, "late": dice.one("stop", "reject")},
            {"count": rounds + 1, "staleness_bound": dice.one(1, 3, "none")},
            {"count": rounds, "repeats": False},
            {"seconds": 3.0},
            {"harmonic_mean": 1.5},
            {"count": rounds, "filter": "start"},
            {"count": rounds + 1, "fastest": max(1, rounds - 1)},
        ),
        "routed": lambda: {
            "tasks": n + dice.one(0, 3),
            "route": dice.one("random", "shuffled", "back"),
            "reads": dice.one("routing", "service"),
        },
        "rounds": lambda: {
            "order": dice.one("parallel", "sequential"),
            "exchange": dice.one("star", "pairwise"),
        },
        "cyclic": lambda: {"step": law(dice), "lag": dice.one("K-1", "K")},
        "centralised": lambda: {"step": law(dice)},
        "pipeline": lambda: {"stages": 3, "schedule": dice.one("1f1b", "2bw")},
        "gossip": lambda: dice.one(
            {"graph": graph(dice), "order": dice.one(*ORDERS)},
            {"average": "all"},
            {"average": "neighbours", "graph": graph(dice)},
            {"graph": {"kind": "complete"}, "initiator": "every"},
        ),
        "push_gossip": lambda: {
            "tokens": dice.one(
                None,
                {"kind": "simple", "capacity": 3},
                {"kind": "generalised", "capacity": 6, "divisor": 2},
            )
        },
        "hierarchy": lambda: {
            "edges": dice.one(1, 2, n),
            "rounds": dice.one(1, 2),
            "cloud": dice.one("synchronous", "asynchronous"),
            "edge": dice.one("synchronous", "asynchronous"),
            "upload": dice.one(None, law(dice, 0.3)),
        },
    }
    name = "asynchronous" if kind == "bounded" else kind
    return {"kind": name} | options.get(kind, dict)()


def graph(dice: Dice) -> Tree:
    """Returns a graph that some even numbers of workers may have."""
    return dice.one(
        *({"kind": kind} for kind in ("ring", "complete", "bipartite", "torus")),
        {"kind": "random_regular", "degree": 3},
        {"kind": "erdos_renyi", "probability": 0.7},
        {"kind": "edges", "edges": [[1, 2], [1, 3], [1, 4]]},
    )


def world(dice: Dice, kind: str, num_clients: int) -> Tree:
    """Returns the clients, the server and the protocol of a scenario."""
    tree: Tree = {"protocol": protocol(dice, kind, num_clients)}
    if kind in POOLED:
        return tree
    clients = behaviour(dice, kind) | rates(dice, kind)
    if kind == "cyclic":
        clients = {"compute": {"law": "constant", "value": 1}}
    if dice.chance(0.2) and kind in SHOWN and num_clients > 2:
        clients["groups"] = {
            "few": {"number": 1} | behaviour(dice, kind),
            "many": {"number": num_clients - 1},
        }
    if dice.chance(0.25) and kind not in STEPPED:
        clients["slowdowns"] = [
            dice.one(
                {"kind": "random", "factor": 2},
                {"kind": "named", "clients": [1], "factor": 5},
                {"kind": "regime", "factor": 3, "normal": law(dice), "slow": law(dice)},
            )
        ]
    if dice.chance(0.3) and kind not in EVERYONE:
        flying = num_clients if kind == "t_synchronous" else num_clients // 2
        clients["selection"] = {
            "in_flight": max(1, flying),
            "by": dice.one("uniform", "weighted", "cyclic"),
            "weights": "m",
        }
        if kind in ("asynchronous", "buffered") and dice.chance(0.4):
            clients["selection"] |= dice.one(
                {"refill": max(1, flying // 2)},
                {"arrivals": {"gap": {"law": "expon", "scale": 0.5}}},
            )
    tree["clients"] = clients
    server: Tree = {}
    if kind not in UNSERVED and kind != "rounds":
        if dice.chance(0.2):
            server["service"] = law(dice, 0.1)
        for way in ("upload", "download"):
            if dice.chance(0.15) and kind in SHOWN:
                server[f"{way}_bandwidth"] = 3000.0
    return tree | {"server": server}


def stop(dice: Dice, tree: Tree, kind: str, commits: int) -> Tree:
    """Returns an end: by time, and perhaps by something else before."""
    ends = [{}, {"commits": commits}, {"contributions": commits}]
    if kind in ("synchronous", "collect", "rounds", "hierarchy"):
        ends.append({"rounds": max(1, commits // 4)})
    if kind in SHOWN:
        ends.append({"bytes": 100 * commits})
    return {"time": 60.0} | dice.one(*ends)


def timeline_scenario(seed: int, **changes: Any) -> WorldScenario:
    """Returns a world without numerics, of 1 to 12 clients."""

    def made(dice: Dice, kind: str) -> WorldScenario:
        n = dice.one(1, 2, 4, 6, 8, 12)
        n = 2 * max(1, n // 2) if kind in UNSERVED else n
        tree = world(dice, kind, n)
        if "clients" in tree and not tree["clients"].get("groups"):
            tree["clients"]["number"] = n
        job = {"upload_bytes": 60, "download_bytes": 40, "steps": 2, "samples": 4}
        more = {"name": f"world-{seed}", "seed": seed, "job": job}
        tree |= more | {"stop": stop(dice, tree, kind, 100)} | changes
        return WorldScenario.model_validate(tree)

    return _valid(seed, made)


LEARN: dict[str, Tree] = {
    "buffered": {"kind": "fed_buff", "step_size": 0.05, "batch": 2, "local_steps": 1},
    "gossip": {"kind": "psgd", "step_size": 0.05, "batch": 2},
    "push_gossip": {"kind": "psgd", "step_size": 0.05, "batch": 2},
    "hierarchy": {"kind": "hierarchical", "step_size": 0.05, "batch": 2},
    "phases": {"kind": "ringleader", "step_size": 0.05, "batch": 2},
    "rounds": {"kind": "fed_bcd", "step_size": 0.05, "batch": 4, "local_steps": 1},
    "pipeline": {"kind": "pipelined", "step_size": 0.05, "batch": 2},
}
SGD = {"kind": "sgd", "step_size": 0.05, "batch": 2}
CLIENTS = 4


def engine_scenario(seed: int, **changes: Any) -> Scenario:
    """Returns a small world with numerics; all of a protocol have one shape."""

    def made(dice: Dice, kind: str) -> Scenario:
        tree = world(dice, kind, CLIENTS)
        tree |= {"name": f"run-{seed}", "seed": seed, "problem": problem(kind)}
        tree["algorithm"] = LEARN.get(kind, SGD)
        tree["stop"] = stop(dice, tree, kind, 150)
        tree["evaluate"] = {
            "every": dice.one({"time": 7.0}, {"commits": 11}),
            "metrics": ["objective" if kind != "pipeline" else "test_loss"],
        }
        return Scenario.model_validate(tree | changes)

    return _valid(seed, made)


def problem(kind: str) -> Tree:
    """Returns data of few numbers, for the protocol."""
    if kind == "rounds":
        return {
            "data": {"kind": "breast_cancer", "scale": "standard"},
            "partition": {"kind": "vertical", "parties": CLIENTS},
        }
    if kind == "pipeline":
        return {
            "data": {"kind": "digits", "limit": 100},
            "partition": {"kind": "iid", "clients": 1},
            "model": {"kind": "dense", "hidden": [8, 8]},
        }
    data = {"kind": "quadratic", "clients": CLIENTS, "dimension": 3, "samples": 6}
    return {
        "data": data | {"noise": 0.1},
        "partition": {"kind": "natural", "clients": CLIENTS},
        "model": {"kind": "diagonal"},
        "loss": "squared",
    }


def _valid(seed: int, made: Any) -> Any:
    """Returns the first scenario of a seed whose parts fit each other."""
    kind = PROTOCOLS[seed % len(PROTOCOLS)]
    for attempt in range(100):
        try:
            return made(Dice(seed, attempt), kind)
        except ValueError as error:
            refused = error
    raise AssertionError(f"no world of {kind} is valid: {refused}")
