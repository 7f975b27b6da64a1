"""How often a comparison of two methods is wrong, tuned in several ways.

    python -m benchmarks.compared [COMPARISONS]

500 comparisons by default, in some 20 minutes; each of two methods whose accuracy is
known: a parabola in the logarithm of the step size, and noise of a replicate, part of
it common to both. In half of them neither is better at its best; in the other half one
is. Their best steps lie apart, a factor of 16 at most. Verdicts are those of the
program (an exact sign test of 12 paired replicates, level 5 %):

- `compare`: each at its own choice, by other seeds than those that judge;
- `one step`: both at the step that is best for the first;
- `one tuned`: the second is left at the step from which the search of the first began;
- `same runs`: each at the best of a grid by the runs that judge, 12 points of one and
  3 of the other.

The runs are not simulated: their accuracies are drawn. Everything else, from the grid
to the verdict, is the program's.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stalesim.analysis import claims
from stalesim.simulator.files.study import Study, Writer, load, write_manifest
from stalesim.simulator.files.study.manifest import NAME
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import comparing, running

COMPARISONS, REPLICATES, TRIALS = 500, 12, 16
TOP, CURVATURE = 0.9, 0.01
"""Accuracy at the best step, and what is lost a doubling away from it."""
COMMON, OWN = 0.02, 0.01
"""Standard deviations of a replicate's noise: of both methods, of one alone."""
EFFECT = 0.015
"""By how much the second method is better where it is."""
START = 0.1
"""The step at which grids have their middle."""
WAYS = ("compare", "one step", "one tuned", "same runs")
TREE: dict[str, Any] = {
    "name": "compared",
    "problem": {"data": {"kind": "digits"}, "partition": {"kind": "iid", "clients": 2}},
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": START, "batch": 8},
    "stop": {"commits": 20},
    "evaluate": {"every": {"commits": 10}, "metrics": ["test_accuracy"]},
    "replicates": REPLICATES,
    "variants": {"one": {}, "two": {"algorithm": {"batch": 16}}},
    "claims": [{"higher": "two", "than": "one", "says": "two is better"}],
}
COMPARE: dict[str, Any] = {
    "over": {"algorithm.step_size": {"from": 0.01, "to": 1, "num": 3, "scale": "log"}},
    "objective": "test_accuracy",
    "budget": {"trials": TRIALS},
    "replicates": 5,
}


class Methods:
    """Two methods whose accuracies are known.

    Args:
        number: Number of the comparison, which their best steps are drawn by.
    """

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng([number, 1])
        self.best = dict(
            zip(("one", "two"), START * 2 ** rng.uniform(-2, 2, 2), strict=True)
        )
        self.effect = EFFECT * (number % 2)
        self.number = number

    def accuracy(self, variant: str, step: float, seed: int) -> float:
        """Returns the accuracy of a run."""
        common = np.random.default_rng([self.number, seed]).normal(0, COMMON)
        entropy = [self.number, seed, variant == "two", round(1e6 * step)]
        own = np.random.default_rng(entropy).normal(0, OWN)
        lost = CURVATURE * np.log2(step / self.best[variant]) ** 2
        top = TOP + self.effect * (variant == "two")
        return float(np.clip(top - lost + common + own, 0, 1))

    def __call__(self, scenario: Any, path: Path, **options: Any) -> Study:
        """Writes a study, as `simulate` would."""
        path.mkdir(exist_ok=True)
        old = load(path).manifest if (path / NAME).exists() else {}
        writer, runs = Writer(path, f"{old.get('session', 0) + 1:05d}"), []
        values = []
        for run in expand(scenario):
            step = run.scenario.algorithm.step_size
            values.append(self.accuracy(run.variant, step, run.seed))
            end = {"stop": "commits", "stop_reason": "", "virtual_s": 1.0}
            of_run = {"protocol": "asynchronous", "commits": 20, "scenario": {}}
            runs.append({**run.identity, **end, **of_run})
        whole = ("commits", "contributions", "upload_bytes", "download_bytes")
        numbers = np.zeros(len(runs), np.int64)
        writer.append(
            "evaluations",
            {
                "run": np.arange(len(runs), dtype=np.int32),
                "time": np.ones(len(runs)),
                **dict.fromkeys((*whole, "rounds", "messages"), numbers),
                "epochs": np.zeros(len(runs)),
                "test_accuracy": np.array(values),
            },
        )
        writer.flush()
        for run in runs:
            run["rows"] = writer.rows.get(run["run"], {})
        tree = scenario.model_dump(mode="json")
        usual = {"inputs": {}, "modules": {}, "environment": {}, "session": 0}
        manifest = {**usual, **old, "status": "complete", "name": scenario.name}
        manifest |= {"scenario": tree, "runs": runs, "parts": writer.parts}
        write_manifest(path, manifest)
        return load(path)


def verdict(study: Study) -> str:
    """Returns the verdict on the only claim of a study."""
    return str(claims.evaluate(study)["verdict"].iloc[0])


def at(methods: Methods, seed: int, folder: Path, steps: dict[str, float]) -> str:
    """Returns the verdict where each method has a given step."""
    tree = {**TREE, "seed": seed}
    tree["variants"] = {
        name: {"algorithm": {**changes.get("algorithm", {}), "step_size": steps[name]}}
        for name, changes in TREE["variants"].items()
    }
    return verdict(methods(validated(tree), folder))


def judged(number: int, folder: Path) -> dict[str, Any]:
    """Returns the verdicts of one comparison, by way; and which would be right."""
    methods, seed = Methods(number), number
    running.simulate = methods  # what is drawn takes the place of what is simulated
    config = validated({**TREE, "seed": seed, "compare": COMPARE})
    study = comparing.compare(config, folder / "compare")
    found = study.manifest["scenario"]["compare"]["found"]
    best = {name: c["best"]["algorithm.step_size"] for name, c in found.items()}
    seeds = {run["seed"] for run in study.manifest["runs"]}
    lucky: dict[str, float] = {}
    for name, points in {"one": 3, "two": 12}.items():
        means = {
            float(step): np.mean([methods.accuracy(name, step, each) for each in seeds])
            for step in START * 2 ** np.linspace(-3, 3, points)
        }
        lucky[name] = max(means, key=means.__getitem__)
    ways = {
        "one step": {"one": best["one"], "two": best["one"]},
        "one tuned": {"one": best["one"], "two": START},
        "same runs": lucky,
    }
    verdicts = {"compare": verdict(study)}
    for way, steps in ways.items():
        verdicts[way] = at(methods, seed, folder / way, steps)
    return {"effect": methods.effect, **verdicts}


def wrong(row: Any, way: str) -> bool:
    """Says whether a verdict is not true: that of equal ones is neither."""
    if row["effect"]:
        return row[way] == "does not hold"
    return row[way] in ("holds", "does not hold")


def main(number: int) -> None:
    rows = []
    for each in range(number):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(judged(each, Path(folder)))
    table = pd.DataFrame(rows)
    print(f"{'':24}{''.join(f'{way:>12}' for way in WAYS)}")
    for name, part in (
        ("wrong, all", table),
        ("wrong, equal at best", table[table["effect"] == 0]),
        ("wrong, one is better", table[table["effect"] > 0]),
    ):
        shares = [
            np.mean([wrong(row, way) for _, row in part.iterrows()]) for way in WAYS
        ]
        print(f"{name:24}{''.join(f'{share:12.3f}' for share in shares)}")
    better = table[table["effect"] > 0]
    shares = [(better[way] == "holds").mean() for way in WAYS]
    print(f"{'found, one is better':24}{''.join(f'{s:12.3f}' for s in shares)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else COMPARISONS)
