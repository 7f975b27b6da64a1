"""What it costs that a world asks for numerics, by commits between two questions.

    python benchmarks/feedback.py [--commits N]
    python benchmarks/feedback.py --rules

Processor time of whole runs, least of three alternating turns, as a ratio to the same
world and protocol that ask nothing; SimPy plays both. With `--rules` it is that of the
parts that ask, at 100 clients, each against one that decides the same without asking.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar, Literal

from stalesim.simulator.engine import device

device.before_import()
sys.path.insert(0, str(Path(__file__).parent))
from side_by_side import Nowhere, alternately, scenario

from stalesim.simulator.engine import simulation
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.world.cycle import Cycle
from stalesim.simulator.world.protocol import Protocol


class Looking(Protocol):
    """Asynchronous; may look at losses now and then, and does nothing about them."""

    kind: Literal["looking"] = "looking"
    like: ClassVar[str] = "asynchronous"
    every: int

    def play(self, world: Any, recorder: Any) -> None:
        """Starts every client."""
        every = self.every if self.asks else 0

        def arrive(client: int) -> None:
            recorder.commit((client,))
            if every and recorder.version % every == 0:
                world.ask(cycle.again, client)
            else:
                cycle.again(client)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()


class Curious(Looking):
    """The same with its question."""

    asks: ClassVar[tuple[str, ...]] = ("losses", "norms")


SIZES = {"least": 10, "most": 10, "every": 1000}
BUFFER = {"kind": "buffered", "size": 10}
RULES: dict[str, tuple[int, int, dict[str, Any], dict[str, Any]]] = {
    "`norm_test`, buffers of 10": (
        *(12_000, 1000),
        {"protocol": BUFFER | {"size_by": {"kind": "staleness", "target": 1, **SIZES}}},
        {"protocol": BUFFER | {"size_by": {"kind": "norm_test", **SIZES}}},
    ),
    "`adacomm`, one local step": (
        *(12_000, 1000),
        {"local_steps_by": {"kind": "schedule", "values": [1], "seconds": [10]}},
        {"local_steps_by": {"kind": "adacomm", "interval": 10}},
    ),
}
"""Commits, commits between questions, and changes: of the world, and as it asks."""


def work_of(changes: dict[str, Any], commits: int) -> Any:
    """Returns a run of a changed scenario, prepared and compiled."""
    tree = scenario("sgd", 100, commits).model_dump(mode="json", exclude_unset=True)
    tree["clients"] = {"compute": {"law": "expon"}}  # 100 jobs a second
    tree["protocol"] = {"kind": "asynchronous"} | changes.get("protocol", {})
    tree["clients"] |= {k: v for k, v in changes.items() if k != "protocol"}
    tree["evaluate"] = {
        "every": {"commits": commits},
        "metrics": ["objective", "gradient_norm_squared"],
    }
    tree["timeline"] = {"player": "simpy"}
    return compiled(Scenario.model_validate(tree))


def work(protocol: Protocol, clients: int, commits: int) -> Any:
    """Returns a run, prepared and compiled."""
    tree = scenario("sgd", clients, commits).model_copy(update={"protocol": protocol})
    return compiled(tree)


def compiled(tree: Scenario) -> Any:
    """Returns a run, prepared and compiled."""
    prepared = simulation.prepare(Run(0, "base", {}, 0, 1, tree))

    def run() -> None:
        simulation.execute([prepared], "compiled", Nowhere())  # pyright: ignore

    run()
    return run


def rules() -> None:
    """Prints a table of the parts that ask."""
    print("| part | commits between questions | µs a commit, not asking | ratio |")
    print("|---|---|---|---|")
    for name, (commits, between, *changes) in RULES.items():
        plain, asking = alternately(*(work_of(each, commits) for each in changes))
        each = plain / commits * 1e6
        print(f"| {name} | {between} | {each:.1f} | {asking / plain:.2f} |")


def main() -> None:
    """Prints a table."""
    warnings.filterwarnings("ignore", "Pydantic serializer")  # of an unlisted part
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=16_000)
    parser.add_argument("--rules", action="store_true")
    given = parser.parse_args()
    commits = given.commits
    if given.rules:
        rules()
        return
    print(
        "| clients | commits between questions | µs a commit, asking nothing | ratio |"
    )
    print("|---|---|---|---|")
    for clients in (16, 100):
        for every in (1, 10, 100, 1000):
            number = min(commits, 400 * every)
            works = (
                work(kind(every=every), clients, number) for kind in (Looking, Curious)
            )
            plain, asking = alternately(*works)
            each = plain / number * 1e6
            print(f"| {clients} | {every} | {each:.1f} | {asking / plain:.2f} |")


if __name__ == "__main__":
    main()
