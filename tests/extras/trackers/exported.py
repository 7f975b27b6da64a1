"""A study whose export is known: two groups, one failed run, one incomplete."""

import pandas as pd

from tests.unit.analysis.studies import Curves, empty, histogram_of, run_of

ACCURACY = {"async": [0.1, 0.5, 0.9], "step_size=0.2": [0.2, 0.3]}
EPSILON = [0.0, 1.5, 2.5]
"""Of the client that has spent most, in the run of group async."""


def scenario(step_size: float) -> dict[str, object]:
    """Returns a resolved scenario with entries of every type."""
    return {
        "name": "fake",
        "seed": 7,
        "claims": [],
        "algorithm": {"kind": "vafl", "step_size": step_size, "batch": None},
        "problem": {"shuffle": True, "groups": [[0, 1], [2]]},
        "clients": {"groups": {"slow phones, 10 %": {"number": 5}}},
    }


class Exported(Curves):
    """Evaluations at 0, 1, 2 s after 0, 10, 20 commits; epsilon in the first run."""

    def __init__(self) -> None:
        super().__init__({name: [curve] for name, curve in ACCURACY.items()})
        for number, run in enumerate(self.manifest["runs"]):
            last = len(ACCURACY[run["label"]]) - 1
            run |= {
                "seed": 40 + number,
                "scenario": scenario(0.1 * (1 + number)),
                "commits": 10 * last,
                "virtual_s": float(last),
            }
        self.manifest["runs"] += [
            run_of(2, "async", 1, stop="failed", scenario=scenario(0.1)),
            run_of(3, "async", 2, stop="incomplete", scenario=scenario(0.1)),
        ]
        lost = self.tables["evaluations"].query("run == 0").assign(run=3)
        ages = histogram_of(0, 0, pd.Series([0, 1, 1, 2, 9]).to_numpy(), "contribution")
        self.tables |= {
            "evaluations": pd.concat([self.tables["evaluations"], lost]),
            "staleness": ages,
            "privacy": privacy(),
        }

    def table(self, name: str) -> pd.DataFrame:
        return self.tables.get(name, empty(name))


def privacy() -> pd.DataFrame:
    """Returns what two clients have spent; the second one half of the first."""
    rows = [
        (0, float(time), client, 3, largest / client, 1e-5, "rdp", True, "a sample")
        for time, largest in enumerate(EPSILON)
        for client in (1, 2)
    ]
    columns = ["run", "time", "client", "releases", "epsilon"]
    columns += ["delta", "accountant", "formal", "protects"]
    return pd.DataFrame(rows, columns=pd.Index(columns))
