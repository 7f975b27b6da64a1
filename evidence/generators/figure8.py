"""MAPA's figure 8 on real processes: its figure and its tables, from `results/testbed`.

Final accuracy is the mean of the last two evaluations, which are a tenth of a run's, as
in closing tables. Curves are apart by their difference at equal commits.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from .formulas import markdown

SIZE = (7.16, 4.8)
NAMES = {"asgd": "ASGD", "audp-tuned": "AUDP, tuned", "mapa": "MAPA"}
BOTH = ("testbed", "simulation")
NEAR = 0.02
"""How near to CSGD is near, as the scenario's claims have it."""


def tables(folder: Path) -> str:
    """Returns the tables.

    Args:
        folder: Of the testbed's results.
    """
    curves = pd.read_csv(folder / "figure8.csv")
    times = pd.read_csv(folder / "figure8_times.csv")
    return "\n".join(
        [
            "### MAPA's figure 8: the paper's claims\n",
            markdown(_claims(curves)),
            "\n### MAPA's figure 8: testbed and simulation\n",
            markdown(_sides(curves, times)),
            "\n### MAPA's figure 8: what real time adds to a job\n",
            markdown(_added(times)),
        ]
    )


def draw(folder: Path, figures: Path) -> None:
    """Draws accuracy against virtual time: a panel for each number of edges.

    Args:
        folder: Of the testbed's results.
        figures: Folder of the figures.
    """
    curves = pd.read_csv(folder / "figure8.csv")
    acted_out = curves[curves["clients"] > 0]
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(2, 2, sharey=True).flat
        colours = dict(zip(NAMES, style.palette(), strict=False))
        for axes, (clients, mine) in zip(
            panels, acted_out.groupby("clients"), strict=True
        ):
            for key, run in mine.groupby(["by", "variant", "replicate"]):
                by, variant, _ = key
                dashes = "-" if by == "testbed" else ":"
                axes.plot(
                    *(run["time"], run["test_accuracy"], dashes),
                    color=colours[str(variant)],
                )
            axes.set(title=f"{clients} edges", ylim=(0, 1))
        lines = [Line2D([], [], color=colours[name]) for name in NAMES]
        lines += [Line2D([], [], color=style.ink(), ls=dashes) for dashes in "-:"]
        figure.legend(
            lines, [*NAMES.values(), *BOTH], loc="outside upper center", ncols=5
        )
        figure.supxlabel("Virtual time (s)")
        figure.supylabel("Accuracy on the test set")
        save_figure(figure, figures / "mapa-figure-8")


def _finals(curves: pd.DataFrame) -> Any:
    """Returns final accuracies by side, edges, variant and replicate."""
    last = curves.groupby(["by", "clients", "variant", "replicate"]).tail(2)
    return last.groupby(["by", "clients", "variant", "replicate"])[
        "test_accuracy"
    ].mean()


def _claims(curves: pd.DataFrame) -> pd.DataFrame:
    finals = _finals(curves)
    centralised = finals["simulation", 0, "csgd"]
    edges = sorted(set(curves["clients"]) - {0})

    def minus(one: str, other: str | None) -> Callable[[str, int], Any]:
        def apart(by: str, clients: int) -> Any:
            less = finals[by, clients, other] if other else centralised
            return finals[by, clients, one] - less

        return apart

    rows = []
    for says, apart, where, holds in (
        ("MAPA is above AUDP (tuned) in all panels",
         minus("mapa", "audp-tuned"), edges, lambda d: d > 0),
        ("MAPA overtakes ASGD as edges are added, and has at 20",
         minus("mapa", "asgd"), edges[-1:], lambda d: d > 0),
        (f"MAPA ends near CSGD (no worse than {NEAR} below)",
         minus("mapa", None), edges, lambda d: d >= -NEAR),
        (f"AUDP (tuned) ends near CSGD (no worse than {NEAR} below)",
         minus("audp-tuned", None), edges, lambda d: d >= -NEAR),
    ):  # fmt: skip
        row = {"the paper says": says}
        for by in BOTH:
            found = np.concatenate([apart(by, clients) for clients in where])
            row[by] = (
                f"{holds(found).sum()} of {found.size} runs, differences "
                f"{found.min():+.3f} to {found.max():+.3f}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _sides(curves: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    finals = _finals(curves)
    keys = ["clients", "variant", "replicate", "commits"]
    wide = curves.pivot_table("test_accuracy", keys, "by").dropna()
    apart: Any = (wide["testbed"] - wide["simulation"]).abs()
    rows = []
    for key, mine in times.groupby(["clients", "variant"]):
        clients, variant = key  # pyright: ignore
        off: Any = apart[clients, variant]
        means = mine.mean(numeric_only=True)
        longer = means["end_s"] / means["simulated_end_s"] - 1
        rows.append(
            {
                "edges": clients,
                "method": NAMES[str(variant)],
                **{
                    f"final accuracy, {by}": ", ".join(
                        f"{value:.3f}" for value in finals[by, clients, variant]
                    )
                    for by in BOTH
                },
                "apart (mean, largest)": f"{off.mean():.3f}, {off.max():.3f}",
                "time of all commits": f"{longer:+.1%}",
                "mean staleness": f"{means['staleness']:.2f} "
                f"({means['simulated_staleness']:.2f})",
            }
        )
    return pd.DataFrame(rows)


def _added(times: pd.DataFrame) -> pd.DataFrame:
    by = times.groupby("clients")
    parts = {
        "to_client_ms": "to the client (ms)",
        "computing_ms": "computing and sleeping beyond the law (ms)",
        "to_server_ms": "to the server (ms)",
        "at_server_ms": "at the server (ms)",
    }
    return pd.DataFrame(
        {
            "edges": clients,
            "load": f"{mine['load'].min():.0f} to {mine['load'].max():.0f}",
            "law (ms)": f"{mine['law_ms'].mean():.0f}",
            **{said: f"{mine[name].mean():.2f}" for name, said in parts.items()},
            "added": f"{mine['excess'].min():.1%} to {mine['excess'].max():.1%}",
        }
        for clients, mine in by
    )
