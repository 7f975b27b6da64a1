"""How many clients end at or below an accuracy: a line for each group of runs."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from ..fairness import METRIC, by_client, spread
from ..frames import Study, groups
from . import layout, style

CAPTIONS = {
    "^fairness$": "Share of clients with at most a given test accuracy, each for its "
    "own mix of labels. The steeper a line, the more equal the clients"
}


def client_accuracies(study: Study, metric: str = METRIC) -> Figure:
    """Draws the share of clients that end at or below an accuracy.

    Clients of all replicates are taken together; a triangle on the axis marks the
    mean of the worst tenth of the clients, over replicates.

    Args:
        study: Study, finished or not.
        metric: Column of the table `workers`.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table, apart = by_client(study, metric), spread(study, metric)
    known = [group for group in groups(study) if group in set(table["group"])]
    labels = [style.text(layout.label(study, group)) for group in known]
    looks = style.looks(known)
    with style.context():
        figure, axes = layout.single(study, 4.6, 3.4)
        handles = []
        for group in known:
            look = looks[group]
            values = np.sort(table.loc[table["group"] == group, "value"].to_numpy())
            parts = np.arange(1, values.size + 1) / values.size
            at, share = np.append(values[:1], values), np.append(0.0, parts)
            handles += axes.plot(
                at, share, drawstyle="steps-post", color=look.color, ls=look.linestyle
            )
            own = apart.loc[(apart["group"] == group) & (apart["clients"] == "all")]
            worst = own["worst_decile"].mean()
            axes.plot(worst, 0, "^", color=look.color, ms=7, clip_on=False, zorder=3)
        axes.set_ylim(0, 1)
        axes.set_xlabel("Test accuracy of a client")
        axes.set_ylabel("Share of clients below")
        layout.add_legend(figure, handles, labels)
        counts = table.groupby("group")["replicate"].nunique()
        together = f"Clients of {layout.replicates(counts)} together"
        worst_of = "triangles: mean of the worst tenth of the clients"
        layout.add_note(figure, (together, worst_of))
    return figure


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the figure, where the accuracy of each client was evaluated."""
    if METRIC in study.manifest["scenario"].get("evaluate", {}).get("metrics", ()):
        yield "fairness", client_accuracies(study)
