"""Remarks on entries that are allowed in a scenario, but hardly meant."""

from collections.abc import Iterator
from itertools import chain

from ..problem.capabilities import StoresEmbeddings
from ..world.protocol_abilities import OwnSteps, Remarked
from ..world.speeds import median_seconds
from .scenario import Scenario
from .setting import BaseScenario
from .study import BASE, Run, expand

UNITS = {
    "time": "virtual s",
    "commits": "commits",
    "rounds": "rounds",
    "epochs": "epochs",
}
"""Units of periods of evaluation and of ends of runs, by their keys."""
MOST = 20
"""Most remarks in full: thousands of variants may have one each."""
TOGETHER = (
    "engine.mode is batched, which on a CPU takes longer than one run after the other "
    "where runs have timelines of their own: leave it out unless they are to run as on "
    "a GPU"
)


def remarks(scenario: BaseScenario) -> list[str]:
    """Returns remarks for the author before a scenario is run, a line each."""
    # Replicates differ in nothing that is looked at here.
    runs = expand(scenario.model_copy(update={"replicates": 1}))
    lines = [_alike(runs), *map(_of_world, runs)]
    if isinstance(scenario, Scenario):
        together = [TOGETHER] if scenario.engine.mode == "batched" else []
        lines += [together, _work_without_time(runs), *map(_of_learning, runs)]
    found = [*dict.fromkeys(chain.from_iterable(lines))]
    more = len(found) - MOST
    return found[:MOST] + ([f"{more:,} more remarks like these"] if more > 0 else [])


def _of_learning(run: Run) -> Iterator[str]:
    """Yields lines on the method, the data and the evaluation of a run."""
    scenario: Scenario = run.scenario
    algorithm, protocol = scenario.algorithm, scenario.protocol
    yield from scenario.biases()
    yield from _by_number(scenario)
    stores = isinstance(algorithm, StoresEmbeddings) and not algorithm.uploads_batch
    if stores and protocol.traits.common_batch and not protocol.traits.pooled:
        yield (
            f"parties upload the common batch alone with the protocol "
            f"{protocol.kind}: write algorithm.upload: batch there"
        )
    for key, unit in UNITS.items():
        period = getattr(scenario.evaluate.every, key)
        end = getattr(scenario.stop, key)
        if period is not None and end is not None and period > end:
            whose = "runs" if run.variant == BASE else f"those of {run.variant}"
            yield (
                f"evaluate.every.{key} is {period:g} {unit}, but {whose} end at "
                f"{end:g}: they are evaluated at their beginning and end alone"
            )


def _by_number(scenario: Scenario) -> Iterator[str]:
    """Yields a line where the clients' numbers alone pair speeds with data."""
    partition, protocol = scenario.problem.partition, scenario.protocol
    clients, n = scenario.clients, scenario.num_clients
    if scenario.algorithm.family != "horizontal" or not partition.by_number:
        return
    untimed = protocol.traits.pooled or isinstance(protocol, OwnSteps)
    if clients is None or untimed or scenario.replays or partition.pairing is not None:
        return
    seconds, other = (median_seconds(clients, n, seed) for seed in (0, 1))
    if (seconds != seconds[0]).any() and (seconds == other).all():
        yield (
            "computing times and data both go by the client's number, alike in every "
            "replicate, so that the order of clients decides who is slow with which "
            "data: add problem.partition.pairing (correlation: 0 draws it in each "
            "replicate)"
        )


def _alike(runs: list[Run]) -> Iterator[str]:
    """Yields a line on the variants that are the same as one before them."""
    first = {run.variant: run for run in reversed(runs)}
    known: dict[str, str] = {}
    pairs = []
    for variant in dict.fromkeys(run.variant for run in runs):
        other = known.setdefault(first[variant].scenario.model_dump_json(), variant)
        if other != variant:
            pairs.append((other, variant))
    for other, variant in pairs[:1]:
        more = f"; so are {len(pairs) - 1:,} more pairs" if len(pairs) > 1 else ""
        yield (
            f"variants {other} and {variant} are the same: what only one of them "
            f"says holds in the other by default{more}"
        )


def _of_world(run: Run) -> Iterator[str]:
    """Yields lines on entries by which clients work otherwise than they seem to."""
    scenario: BaseScenario = run.scenario
    protocol, there = scenario.protocol, scenario.num_workers
    needed = protocol.cadence(there, there).contributions_per_commit
    if needed > there:
        yield (
            f"a commit of {run.variant} takes {needed:,} contributions, but there are "
            f"{there:,} clients: it has several of some"
        )
    clients, n = scenario.clients, scenario.num_clients
    if clients is None or scenario.replays:
        return
    groups, selection = clients.groups.values(), clients.selection
    if groups and clients.compute and all(group.compute for group in groups):
        yield "no client uses clients.compute: each group has its own"
    in_flight = selection.in_flight if selection else n
    if in_flight > n:
        yield (
            f"clients.selection.concurrency is {in_flight:,}, but there are {n:,} "
            f"clients: all may work at once"
        )
    if isinstance(protocol, Remarked):
        yield from protocol.remarks(min(in_flight, n))


def _work_without_time(runs: list[Run]) -> Iterator[str]:
    """Yields a line where jobs of more local work take no longer than others."""
    # Variants with laws of their own may have them for their work.
    works: dict[str, set[int]] = {}
    for scenario in (run.scenario for run in runs):
        clients = scenario.clients
        if clients is None or scenario.protocol.traits.pooled or scenario.replays:
            continue
        if any(part.compute_per == "job" for *_, part in clients.behaviours(1)):
            known = works.setdefault(clients.model_dump_json(), set())
            known.add(scenario.algorithm.steps_per_job)
    if any(len(different) > 1 for different in works.values()):
        yield (
            "local_steps or local_epochs differ, but a job takes as long: if more work "
            "takes longer, give seconds per step with clients.compute_per: step"
        )
