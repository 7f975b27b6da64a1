"""Foretells public runs of FedBuff from public runs of FedAsync, and judges that.

    git clone https://github.com/Avinash-Ashokar/fedasync-staleness FOLDER
    python -m evidence.studies.public_runs foretell FOLDER    # reads no outcome
    python -m evidence.studies.public_runs judge FOLDER

The repository names no licence, so that none of its files are here. Used is its commit
f567026: `archived_experiments/colab`, six experiments of 20 clients of which 5 compute
at a time, once by FedAsync and once by FedBuff, and `results/StragglerSweep`.

The logs have the order of updates and, at each evaluation of the server, seconds and
how many updates had come. An update is put evenly between the two evaluations that
enclose it. When a client reads is not logged: a client asks for one of the 5 places as
soon as it has uploaded, and gets it in order of asking (`FedAsync/run.py` has a
semaphore), so that its job begins when the 15th update after its own has come.

Experiments 1 and 6 were looked at first; their FedBuff gives the ratio of the machines'
speeds. Experiments 2 to 5 were foretold before their FedBuff was read.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from stalesim.analysis import timelines
from stalesim.simulator.extras.logs.worlds import play_like

RESULTS = Path(__file__).parents[1] / "results" / "public-runs"
EXPERIMENTS = "archived_experiments/colab"
SWEEP = "results/StragglerSweep"
CLIENTS, PLACES = 20, 5
KNOWN, HELD_OUT = (1, 6), (2, 3, 4, 5)
"""Experiments whose FedBuff gives the speed of its machine, and those foretold."""
FIRST, LAST = 100, 495
"""Updates between which seconds are compared: after the start, and in every log."""
REPLICATES = 10


def updates(run: Path, method: str) -> pd.DataFrame:
    """Returns the updates of a run: client, position from 1, version, arrived_time.

    `version` is the logged number of merges before the update.
    """
    order = pd.read_csv(run / f"{method}ClientParticipation.csv")
    seen = pd.read_csv(run / f"{method}.csv")
    counts, times = seen["total_agg"].to_numpy(), seen["time"].to_numpy()
    position = np.arange(1, len(order) + 1)
    after = np.searchsorted(counts, position)  # the first evaluation that has it
    known = after < counts.size
    order, position, after = order[known], position[known], after[known]
    low = np.where(after > 0, counts[after - 1], 0)
    start = np.where(after > 0, times[after - 1], 0.0)
    part = (position - low) / (counts[after] - low)
    return pd.DataFrame(
        {
            "client": order["client_id"].to_numpy(),
            "position": position,
            "version": order["total_agg"].to_numpy(),
            "arrived_time": start + part * (times[after] - start),
        }
    )


def with_reads(found: pd.DataFrame) -> pd.DataFrame:
    """Returns a log of jobs, which begin in the order in which clients ask."""
    before = found.groupby("client")["position"].shift(1)
    # Of the first jobs those of the first clients begin at once, others in their order.
    begins = before.fillna(found["client"] + 1 - CLIENTS) + CLIENTS - PLACES
    begins = begins.clip(0, found["position"] - 1).astype(int)
    at = np.r_[0.0, found["arrived_time"].to_numpy()][begins]
    return found[["client", "arrived_time"]].assign(read_time=at)


def seconds(found: pd.DataFrame) -> float:
    """Returns the seconds from update `FIRST` to update `LAST`."""
    at = found.set_index("position")["arrived_time"]
    return float(at[LAST] - at[FIRST])


def uneven(found: pd.DataFrame) -> dict[str, float]:
    """Returns how unequal shares are, and how far from turns clients take."""
    counts = found["client"].value_counts()
    gaps = found.groupby("client")["position"].diff().dropna()
    return {
        "most updates of a client": int(counts.max()),
        "fewest updates of a client": int(counts.min()),
        "updates between a client's two, mean distance from 20": round(
            float((gaps - CLIENTS).abs().mean()), 2
        ),
    }


def fitted(log: pd.DataFrame) -> float:
    """Returns the seconds of the same updates in the world that is fitted to a log.

    The protocol is FedBuff's as it was configured: 5 updates or 0 s, so that every
    update makes a version.
    """
    with tempfile.TemporaryDirectory() as place:
        log.to_csv(path := Path(place) / "log.csv", index=False)
        protocol = {"kind": "buffered", "size": 1}
        changes = [f"replicates={REPLICATES}"]
        study, _ = play_like(path, Path(place) / "played", protocol, changes=changes)
        found = timelines.View(study).by_run
    rate = found.loc[found["group"] == "buffered", "contributions_per_s"].mean()
    return (LAST - FIRST) / float(rate)


def runs(folder: Path, method: str, number: int) -> Path:
    """Returns the folder of the last, longest run of an experiment."""
    place = folder / EXPERIMENTS / method
    return max(place.glob(f"Exp{number}_*/run_*"))


def foretold(folder: Path) -> Iterator[dict[str, object]]:
    """Yields what is foretold of each experiment, without its own FedBuff."""
    known = {n: updates(runs(folder, "FedAsync", n), "FedAsync") for n in range(1, 7)}
    own = {number: seconds(found) for number, found in known.items()}
    world = {number: fitted(with_reads(found)) for number, found in known.items()}
    there = {n: seconds(updates(runs(folder, "FedBuff", n), "FedBuff")) for n in KNOWN}
    for by, numbers in (("FedAsync's own seconds", own), ("fitted world", world)):
        ratio = np.mean([there[number] / numbers[number] for number in KNOWN])
        for number in HELD_OUT:
            for name, factor in ((by, 1.0), (f"{by}, machine of 1 and 6", ratio)):
                yield {
                    "experiment": number,
                    "quantity": f"seconds from update {FIRST} to {LAST}",
                    "by": name,
                    "foretold": round(numbers[number] * factor, 1),
                }
    for number in HELD_OUT:
        measures = {"versions per update": 1, **uneven(known[number])}
        for quantity, value in measures.items():
            yield {"experiment": number, "quantity": quantity,
                   "by": "FedAsync's own order", "foretold": value}  # fmt: skip


def judged(folder: Path) -> pd.DataFrame:
    """Returns what was foretold, next to what happened, and errors in percent."""
    told = pd.read_csv(RESULTS / "foretold.csv")
    happened = {}
    for number in HELD_OUT:
        found = updates(runs(folder, "FedBuff", number), "FedBuff")
        rise = found["version"].diff().dropna()
        values = {
            f"seconds from update {FIRST} to {LAST}": seconds(found),
            "versions per update": round(float(rise.mean()), 3),
            **uneven(found),
        }
        happened |= {(number, name): value for name, value in values.items()}
    keys = zip(told["experiment"], told["quantity"], strict=True)
    told["happened"] = [round(happened[key], 3) for key in keys]
    error = 100 * (told["foretold"] / told["happened"] - 1)
    return told.assign(error_percent=error.round(1))


def staleness(folder: Path) -> pd.DataFrame:
    """Returns logged staleness next to that of an order whose clients read at once."""
    rows = []
    for percent in (20, 30, 40, 50):
        name = f"{SWEEP}/{percent}_pct/FedAsyncClientParticipation_V2.csv"
        log = pd.read_csv(folder / name)
        last = log.groupby("client_id")["total_agg"].shift(1, fill_value=0)
        by_order, logged = log["total_agg"] - 1 - last, log["staleness"]
        rows.append(
            {
                "stragglers_percent": percent,
                "updates": len(log),
                "logged_mean": round(logged.mean(), 3),
                "by_order_mean": round(by_order.mean(), 3),
                "equal_percent": round(100 * (by_order == logged).mean(), 1),
                "mean_error": round((by_order - logged).abs().mean(), 3),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Foretells, or judges, by the arguments of the command line."""
    verb, folder = sys.argv[1], Path(sys.argv[2])
    RESULTS.mkdir(exist_ok=True)
    if verb == "foretell":
        pd.DataFrame(foretold(folder)).to_csv(RESULTS / "foretold.csv", index=False)
        return
    judged(folder).to_csv(RESULTS / "judged.csv", index=False)
    staleness(folder).to_csv(RESULTS / "staleness.csv", index=False)


if __name__ == "__main__":
    main()
