"""Unfair comparisons and artefacts: checks of scenarios.

Worlds alone are checked as well (`doubts`): for laws without a mean, and empty rounds.

Each check is a function of two groups that are compared, and a line of `CHECKS`. It
yields the fault and its remedy.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, permutations
from typing import Any, NamedTuple

from ..simulator.scenario.claims import Claim
from ..simulator.scenario.dialect import Keys
from ..simulator.scenario.scenario import Scenario
from ..simulator.scenario.setting import BaseScenario
from ..simulator.scenario.study import Run, expand
from . import doubts
from .claims.groups import of_runs, points

APPLIED = (
    *("commits", "contributions", "epochs", "rounds"),
    *("messages", "bytes", "upload_bytes", "download_bytes"),
)
"""Counts that omit discarded work: in evaluations, bytes are those of contributions
that the server took."""
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


class Compared(NamedTuple):
    """Two groups that a claim compares or, without claims, two variants.

    Attributes:
        keys: Entry of the scenario that compares them.
        claim: The claim; None without claims.
        names: Variants of both.
        sides: Scenarios of both, each of a run.
        tried: Options of the algorithm that each variant is swept over.
        said: Names of variants, claim, question and source, in lower case.
    """

    keys: Keys
    claim: Claim | None
    names: list[str]
    sides: list[Scenario]
    tried: list[list[str]]
    said: str

    @property
    def counted(self) -> str | None:
        """The count of a claim's comparison: its own, or the one that ends all runs."""
        if self.claim is None or self.claim.counted is not None:
            return self.claim and self.claim.counted
        ends = [side.stop.model_dump(exclude_none=True) for side in self.sides]
        same = {name for end in ends for name in end} - {"target"}
        return same.pop() if len(same) == 1 else None

    def is_named(self, word: str, *values: float) -> bool:
        """Returns whether a name has a difference: a word, or a number of either."""
        numbers = {float(each) for each in NUMBER.findall(" ".join(self.names))}
        return word in self.said or bool(numbers & set(values))


def findings(scenario: BaseScenario) -> list[tuple[Keys, str]]:
    """Returns the faults of a scenario and its comparisons, each once.

    Each has the entry that compares, the fault and the remedy.
    """
    runs = expand(scenario.model_copy(update={"replicates": 1}))
    lines = dict(_of_worlds(runs))
    of_scenario = isinstance(scenario, Scenario)
    for compared in comparisons(scenario, runs) if of_scenario else ():
        for line in chain.from_iterable(check(compared) for check in CHECKS):
            lines.setdefault(line, compared.keys)
    return [(keys, line) for line, keys in lines.items()]


def _of_worlds(runs: Sequence[Run]) -> Iterator[tuple[str, Keys]]:
    """Yields what is doubtful of the worlds of runs, with the entry that says it."""
    entries = [
        {
            "parameters": run.parameters,
            "scenario": run.scenario.model_dump(mode="json"),
            "num_clients": run.scenario.num_clients,
        }
        for run in runs
    ]
    for run, entry in zip(runs, entries, strict=True):
        for key, text in doubts.without_mean(entry["scenario"], entry["num_clients"]):
            yield text, tuple(key.split("."))
        for text in doubts.unreachable(run):
            yield text, ("protocol",)
    for text in doubts.endless(runs):
        yield text, ("stop", "time")
    for key, text in doubts.unequal_means(entries):
        yield text, ("sweep", key)


def comparisons(scenario: Scenario, runs: Sequence[Run]) -> Iterator[Compared]:
    """Yields all pairs that claims compare; without claims, variants with the first.

    For a claim along a sweep, the first points of its variants represent all. The runs
    are those of the first replicate.
    """
    by_label = {run.label: run for run in runs}
    groups = of_runs(runs)
    for index, claim in enumerate(scenario.claims):
        named = dict.fromkeys(name for of in claim.variants().values() for name in of)
        if not claim.compares or len(named) != 2:
            continue
        for labels in points(groups, claim):
            sides = _firsts(by_label[each] for each in labels)
            yield _pair(scenario, ("claims", index), claim, sides, by_label)
    first, *others = _firsts(runs)
    for other in () if scenario.claims else others:
        keys = ("variants", other.variant)
        yield _pair(scenario, keys, None, [first, other], by_label)


def _firsts(runs: Iterable[Run]) -> list[Run]:
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(run.variant, run)
    return list(found.values())


def _pair(
    scenario: Scenario,
    keys: Keys,
    claim: Claim | None,
    sides: Sequence[Run],
    runs: dict[str, Run],
) -> Compared:
    fixed, tried = {} if claim is None else claim.at, []
    for side in sides:
        mine = [run.parameters for run in runs.values() if run.variant == side.variant]
        tried.append(
            [
                key
                for key in side.parameters
                if key.startswith("algorithm.") and key not in fixed
                if len({repr(each[key]) for each in mine}) > 1
            ]
        )
    names = [side.variant for side in sides]
    words = [*names, "" if claim is None else claim.says]
    words += [scenario.question or "", scenario.source or ""]
    scenarios = [side.scenario for side in sides]
    return Compared(keys, claim, names, scenarios, tried, " ".join(words).lower())


def batches(compared: Compared) -> Iterator[str]:
    """Yields a line where their batches differ, and no name mentions it."""
    one, other = (side.algorithm.batch for side in compared.sides)
    if one != other and not compared.is_named("batch", one, other):
        yield (
            f"{_differ(compared, 'algorithm.batch', one, other)}: take the same, or "
            f"name the batch"
        )


def samples_a_commit(compared: Compared) -> Iterator[str]:
    """Yields a line where commits are counted, and hold other numbers of samples.

    Parties of a vertical problem have columns, and their commits have no samples.
    """
    if compared.counted != "commits":
        return
    algorithms = [side.algorithm for side in compared.sides]
    # A part of a client's samples and a number of samples cannot be compared.
    alike = len({(each.family, each.batch < 1) for each in algorithms}) == 1
    if not alike or algorithms[0].family != "horizontal":
        return
    gathered = [
        side.protocol.cadence(*[side.num_workers] * 2).contributions_per_commit
        for side in compared.sides
    ]
    one, other = (
        count * each.batch * each.steps_per_job
        for count, each in zip(gathered, algorithms, strict=True)
    )
    numbers = *gathered, *(each.batch for each in algorithms)
    if one != other and not compared.is_named("equal commits", *numbers):
        yield (
            f"{_differ(compared, 'samples a commit', one, other)}, but commits are "
            f"counted: count or end by epochs, time or bytes, or say that it is at "
            f"equal commits"
        )


def evaluations(compared: Compared) -> Iterator[str]:
    """Yields a line where their evaluation times differ, and no name mentions it."""
    periods = (
        side.evaluate.every.model_dump(exclude_none=True) for side in compared.sides
    )
    one, other = (" ".join(f"{k} {v:g}" for k, v in each.items()) for each in periods)
    if one != other and not compared.is_named("evaluat"):
        yield (
            f"{_differ(compared, 'evaluate.every', one, other)}: final values and "
            f"times to a target are known to other resolutions; take the same"
        )


def tuned(compared: Compared) -> Iterator[str]:
    """Yields a line where several values of an option are tried of one side alone."""
    for one, other in permutations(range(2)):
        tree = compared.sides[other].model_dump()
        for key in () if compared.tried[other] else compared.tried[one]:
            *above, last = key.split(".")
            inner: Any = tree
            for part in above:
                inner = inner.get(part) if isinstance(inner, Mapping) else inner
            is_there = inner is not None and (
                not isinstance(inner, Mapping) or last in inner
            )
            if is_there and not compared.is_named((*above, last)[1]):
                yield (
                    f"{compared.names[one]} alone is swept over {key}, of which "
                    f"{compared.names[other]} has one value: sweep both, or tune both "
                    f"by compare"
                )


def stopped_jobs(compared: Compared) -> Iterator[str]:
    """Yields a line where one side stops jobs, and the count leaves them out."""
    one, other = (bool(side.protocol.stops_jobs) for side in compared.sides)
    if one != other and compared.counted in APPLIED:
        who = compared.names[0 if one else 1]
        yield (
            f"{who} alone stops jobs, which {compared.counted} do not count: count "
            f"time, and show stalesim.wasted"
        )


def _differ(compared: Compared, what: str, one: object, other: object) -> str:
    first, second = compared.names
    return f"{first} and {second} differ in {what} ({one} and {other})"


CHECKS: tuple[Callable[[Compared], Iterator[str]], ...] = (
    *(batches, samples_a_commit, evaluations),
    *(tuned, stopped_jobs),
)
"""Checks of a scenario."""
