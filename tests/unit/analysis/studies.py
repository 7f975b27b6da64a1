"""Studies in memory, whose numbers are known."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.turns import Centralised
from stalesim.simulator.files.study import COLUMNS
from stalesim.simulator.parts.catalogue import parts

REPLICATES = 5
SPEEDS = {"async": 0.08, "async private": 0.05, "sync": 0.005, "central": 0.1}


def usual(claim: dict[str, Any], **entries: Any) -> dict[str, Any]:
    """Returns a claim with those of some entries that its kind has."""
    kind = next(kind for kind in parts("claims") if kind.named in claim)
    return {k: v for k, v in entries.items() if k in kind.model_fields} | claim


def judged(study: Any, **claim: Any) -> pd.Series:
    """Returns the only row that the only claim of a study has."""
    entries = {"metric": "test_accuracy", "by_at_least": 1.0, "says": "figure 2"}
    study.manifest["scenario"]["claims"] = [usual(claim, **entries)]
    frame = claims.evaluate(study)
    assert frame.columns.tolist() == list(claims.COLUMNS)
    (row,) = [row for _, row in frame.iterrows()]
    return row


def run_of(number: int, label: str, replicate: int, **more: Any) -> dict[str, Any]:
    """Returns a run of a manifest."""
    protocol = Centralised() if label == "central" else Asynchronous()
    return {
        "run": number,
        "label": label,
        "variant": label,
        "parameters": {},
        "replicate": replicate,
        "protocol": protocol.kind,
        "facts": protocol.described(3),
        "stop": "time",
        "dataset": "digits-part",
        "commits": 250,
        "elapsed_s": 0.5,
    } | more


def manifest_of(**scenario: Any) -> dict[str, Any]:
    """Returns a manifest without runs."""
    return {
        "name": "fake",
        "status": "complete",
        "scenario": {
            "replicates": REPLICATES,
            "evaluate": {"metrics": ["test_accuracy"]},
            "stop": {"target": None},
            "claims": [],
        }
        | scenario,
        "runs": [],
    }


def evaluations_of(run: int, times: Any, **metrics: Any) -> pd.DataFrame:
    """Returns a run's evaluations: 10 commits, or 5 rounds, between two of them."""
    commits = np.arange(len(times), dtype=np.int64) * 10
    columns = {
        "run": np.int32(run),
        "time": np.asarray(times, np.float64),
        "commits": commits,
        "contributions": commits,
        "epochs": commits / 100,
        "upload_bytes": commits * 1_000_000,
        "download_bytes": commits * 1_000,
        "rounds": commits / 2,
        "messages": commits * 4,
    }
    return pd.DataFrame(columns | metrics)


def empty(table: str) -> pd.DataFrame:
    """Returns a table without rows, as a trace without its parts gives it."""
    return pd.DataFrame(
        {
            name: pd.Series([], dtype="object" if " " in c.dtype else c.dtype)
            for name, c in COLUMNS[table].items()
        }
    )


class Study:
    """A study in memory: its manifest, and its tables."""

    manifest: dict[str, Any]
    tables: dict[str, pd.DataFrame]

    def table(self, name: str) -> pd.DataFrame:
        return self.tables[name]


class Fake(Study):
    """A study of several groups, in memory; `sync` reaches no 0.5 in its time."""

    def __init__(
        self, names: tuple[str, ...] = tuple(SPEEDS), clients: int = 3, noise: float = 0
    ) -> None:
        self.manifest = manifest_of(stop={"target": {"test_accuracy": 0.8}})
        generator = np.random.default_rng(0)
        evaluations, stale, table = [], [empty("staleness")], [empty("clients")]
        times = np.arange(0.0, 101.0, 4.0)
        for run, (name, replicate) in enumerate(
            itertools.product(names, range(REPLICATES))
        ):
            speed = SPEEDS.get(name, 0.03) * generator.uniform(0.9, 1.1)
            accuracy = 0.9 - 0.8 * np.exp(-speed * times)
            if noise:
                accuracy += noise * generator.standard_normal(times.size)
            self.manifest["runs"].append(run_of(run, name, replicate))
            gap = np.exp(-speed * times)
            evaluations.append(
                evaluations_of(run, times, test_accuracy=accuracy, optimality_gap=gap)
            )
            if name == "central":
                continue
            for client in range(1, clients + 1):
                ages = generator.geometric(1 / (1 + client), 2_000)
                stale.append(histogram_of(run, client, ages))
                table.append(client_of(run, client, ages))
        self.tables = {
            "evaluations": pd.concat(evaluations, ignore_index=True),
            "commits": empty("commits"),
            "staleness": pd.concat(stale[1:] or stale, ignore_index=True),
            "clients": pd.concat(table[1:] or table, ignore_index=True),
        }


def histogram_of(
    run: int, client: int, ages: np.ndarray, quantity: str = "embedding"
) -> pd.DataFrame:
    """Returns a histogram of ages, a bin for each."""
    low, count = np.unique(ages, return_counts=True)
    return pd.DataFrame(
        {
            "run": run,
            "client": client,
            "quantity": quantity,
            "start": False,
            "low": low,
            "high": low + 1,
            "count": count,
        }
    )


def client_of(run: int, client: int, ages: np.ndarray) -> pd.DataFrame:
    """Returns a client's row."""
    return pd.DataFrame(
        {
            "run": [run],
            "client": client,
            "num_features": 10,
            "num_samples": 100,
            "num_jobs": 90,
            "num_applied": 80,
            "staleness_mean": 1.5,
            "staleness_max": 7,
            "embedding_staleness_mean": ages.mean(),
            "embedding_staleness_max": ages.max(),
            "releases": 80,
        }
    )


class Curves(Study):
    """A study of the given curves.

    Args:
        groups: accuracies of each replicate, by group; evaluated at 0, 1, 2, ... s.
        stops: why runs ended, by (group, replicate); `time` if not said.
        scenario: entries of the manifest's scenario.
    """

    def __init__(
        self,
        groups: dict[str, Sequence[Sequence[float]]],
        stops: dict[tuple[str, int], str] | None = None,
        **scenario: Any,
    ) -> None:
        longest = max(len(curves) for curves in groups.values())
        self.manifest = manifest_of(**{"replicates": longest} | scenario)
        frames = [empty("evaluations")]
        for group, curves in groups.items():
            for replicate, curve in enumerate(curves):
                number = len(self.manifest["runs"])
                stop = (stops or {}).get((group, replicate), "time")
                self.manifest["runs"].append(
                    run_of(number, group, replicate, stop=stop)
                )
                if len(curve):
                    times = np.arange(len(curve))
                    accuracy = np.asarray(curve, np.float64)
                    frames.append(evaluations_of(number, times, test_accuracy=accuracy))
        self.tables = {
            "evaluations": pd.concat(frames[1:] or frames, ignore_index=True),
            "commits": empty("commits"),
            "staleness": empty("staleness"),
            "clients": empty("clients"),
        }


def arrives(at: int, length: int = 11) -> list[float]:
    """Returns a curve that is at 0.9 from some second on; never if it ends before."""
    return [0.9 if second >= at else 0.1 for second in range(length)]


class Decays(Study):
    """A study of metrics that fall with the commits.

    Args:
        groups: commits and optimality gap of each replicate, by group.
        stops: why runs ended, by (group, replicate); `commits` if not said.
    """

    def __init__(
        self,
        groups: dict[str, Sequence[tuple[Any, Any]]],
        stops: dict[tuple[str, int], str] | None = None,
    ) -> None:
        longest = max(len(curves) for curves in groups.values())
        self.manifest = manifest_of(replicates=longest)
        frames = []
        for group, curves in groups.items():
            for replicate, (commits, gap) in enumerate(curves):
                number = len(self.manifest["runs"])
                stop = (stops or {}).get((group, replicate), "commits")
                run = run_of(number, group, replicate, stop=stop)
                self.manifest["runs"].append(run)
                gap = np.asarray(gap, np.float64)
                frame = evaluations_of(number, commits, optimality_gap=gap)
                frames.append(frame.assign(commits=np.asarray(commits, np.int64)))
        self.tables = {"evaluations": pd.concat(frames, ignore_index=True)}


class Grid(Study):
    """A study of final values at points of a sweep, evaluated at 0, 1 and 2 s.

    Args:
        points: variant, swept values by key, and the final value of each replicate.
        epsilons: what each group's clients had spent by the end, by label.
        budgets: what of these were budgets that ended the runs, by label.
        more: what is said of every run.
    """

    def __init__(
        self,
        points: Sequence[tuple[str, dict[str, Any], Sequence[float]]],
        epsilons: dict[str, Sequence[float]] | None = None,
        budgets: dict[str, float] | None = None,
        **more: Any,
    ) -> None:
        self.manifest = manifest_of(replicates=max(len(p[2]) for p in points))
        frames, spent = [], [empty("privacy")]
        for variant, values, finals in points:
            label = ", ".join([variant, *(f"{k}={v}" for k, v in values.items())])
            for replicate, final in enumerate(finals):
                number = len(self.manifest["runs"])
                run = run_of(number, label, replicate, variant=variant, **more)
                run |= {"parameters": values, "seed": 100 + replicate}
                if epsilons and label in epsilons:
                    accounts = {"delta": 1e-5, "accountants": ["rdp", "lemma2"]}
                    run["privacy"] = accounts | {"protects": "a sample", "formal": True}
                    if budgets and label in budgets:
                        run["privacy"]["budget"] = budgets[label]
                        run["stop"] = "privacy"
                    epsilon = epsilons[label][replicate]
                    spent.append(privacy_of(number, [0, epsilon / 2, epsilon]))
                self.manifest["runs"].append(run)
                curve = [0.0, final, final]
                frames.append(evaluations_of(number, [0, 1, 2], test_accuracy=curve))
        self.tables = {
            "evaluations": pd.concat(frames, ignore_index=True),
            "privacy": pd.concat(spent[1:] or spent, ignore_index=True),
            **{
                name: empty(name)
                for name in ("staleness", "clients", "jobs", "commits")
            },
        }


def privacy_of(run: int, epsilons: Sequence[float]) -> pd.DataFrame:
    """Returns what two clients have spent at 0, 1, 2, ... s; the second spent half.

    The second accountant has ten times as much.
    """
    rows = [
        (run, float(time), client, 0, None, factor * epsilon / client, 1e-5, name)
        for time, epsilon in enumerate(epsilons)
        for client in (1, 2)
        for factor, name in ((1, "rdp"), (10, "lemma2"))
    ]
    columns = [*COLUMNS["privacy"]][: len(rows[0])]
    frame = pd.DataFrame(rows, columns=pd.Index(columns))
    return frame.assign(formal=True, mu=np.nan)
