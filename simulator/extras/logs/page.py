"""A page of diagnostics of laws that were fitted to a log of jobs."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import special

from ....analysis.figures import style
from ....analysis.figures.files import save_figure
from ....analysis.files import replaced
from ....analysis.markup import literal, markdown

if TYPE_CHECKING:
    from ...catalogue.laws.choosing import SeriesFit
    from .shared import Entry
    from .worlds import Fits, FittedWorld

LAGS = 30
"""Lags of the autocorrelation that is drawn."""
MODELS = ("autoregressive", "drifting", "regimes")
BASELINES = ("resampling", "independent fit", "chosen")
"""Forecasts that are compared with a constant mean."""
WORDS = """\
Memory is chosen by what it predicts: each model is fitted to the first half in
time and predicts every duration of the second from all before it. A client with
fewer than 20 durations in a half of the log has halves of its own. `nats` are log-
likelihood a job above independence; a model must be above 0 by Student's test at 1
%. Errors are continuous ranked probability scores in seconds, the less the better:
of the mean, of resampling, of an independent fit, and of what was chosen. A law
that its test refuses (p < 0.01), or that too few independent values can test, is
replaced by the values that were measured, as a marginal law: `refused` says why."""


def table(fits: "Fits") -> pd.DataFrame:
    """Returns the fits of each client and stage, as text."""
    return pd.DataFrame(
        [
            {
                "stage": stage,
                "client": client,
                "durations": len(fit.values),
                "memory": fit.memory,
                "p": "" if np.isnan(fit.p) else f"{fit.p:.3g}",
                **{f"{name} (nats)": _text(fit.gains, name) for name in MODELS},
                **{
                    name: _text(fit.errors, name)
                    for name in ("constant mean", *BASELINES)
                },
                "refused": fit.why,
            }
            for stage, of_clients in fits.items()
            for client, fit in of_clients.items()
        ]
    )


def figures(fits: "Fits") -> Iterator[tuple[str, Figure]]:
    """Yields a figure of each stage: quantiles, autocorrelation, held-out errors."""
    for stage, of_clients in fits.items():
        if mine := [fit for fit in of_clients.values() if fit.errors]:
            yield f"fit-{stage}", _figure(mine)


def save(world: "FittedWorld", path: Path, forms: Sequence[str]) -> list[Path]:
    """Writes the page next to the file of a world, and its figures into `figures`.

    Returns:
        The page, and the figures.
    """
    folder, drawn = path.parent / "figures", []
    name = path.stem
    head = [f"# {literal(world.tree['source'])}", "", WORDS, ""]
    head += [f"Note: {literal(remark)}\n" for remark in world.remarks]
    head += [f"Room of {literal(room)}.\n" for room in world.rooms]
    for slowdown in world.tree["clients"].get("slowdowns", ()):
        who = "Clients of a room" if "clients" in slowdown else "All clients"
        stages, every = " and ".join(slowdown["stages"]), slowdown["every"]
        law = _law(slowdown["factor"])
        text = f"{who} share a factor of {stages}, a new one every {every:g} s"
        head += [f"{text}: {law}.\n"]
    if forms:
        with style.context():
            for stem, figure in figures(world.fits):
                drawn += save_figure(figure, folder / f"{name}-{stem}", forms)
                head += [f"![{stem}](figures/{name}-{stem}.{forms[0]})", ""]
    text = "\n".join([*head, markdown(table(world.fits))])
    page = path.with_suffix(".md")
    with replaced(page) as new:
        new.write_text(text, encoding="utf-8")
    return [page, *drawn]


def _figure(fits: Collection["SeriesFit"]) -> Figure:
    figure = Figure(figsize=(7.16, 2.6), layout="constrained")
    quantiles, lags, errors = figure.subplots(1, 3)
    colour = style.palette()[0]
    for one in fits:
        scores = np.sort(one.scores)
        at = special.ndtri((np.arange(scores.size) + 0.5) / scores.size)
        quantiles.plot(at, scores, lw=1, c=colour, alpha=0.5)
    quantiles.axline((0, 0), slope=1, ls="--", lw=1, c="grey")
    quantiles.set(xlabel="Normal score", ylabel="Observed score",
                  title="QQ of the second half")  # fmt: skip
    for c, what, name in zip(
        style.palette(),
        ([one.series for one in fits], [one.scores for one in fits]),
        ("in the log", "left by the fit"),
        strict=False,
    ):
        found = np.array([_autocorrelation(each) for each in what])
        lags.plot(np.arange(1, LAGS + 1), found.mean(axis=0), c=c, label=name)
    lags.set(xlabel="Lag (jobs)", title="Autocorrelation, mean", ylim=(-0.2, 1))
    lags.legend()
    shares = [
        [one.errors[name] / one.errors["constant mean"] for one in fits]
        for name in BASELINES
    ]
    errors.boxplot(shares, orientation="vertical")
    errors.set_xticks(range(1, 4), ["resampled", "indep.", "chosen"])
    errors.set(title="Error / error of the mean", ylim=(0, None))
    return figure


def _autocorrelation(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean()
    whole = float((centred**2).sum())
    found = np.zeros(LAGS)
    for lag in range(1, min(LAGS + 1, values.size)):
        found[lag - 1] = (centred[lag:] * centred[:-lag]).sum() / max(whole, 1e-12)
    return found


def _law(law: "Entry") -> str:
    options = [f"{k} {v}" for k, v in law.items() if k not in ("law", "of")]
    parts = law.get("of", [])
    inner = " and ".join(map(_law, parts if isinstance(parts, list) else [parts]))
    own = f" ({', '.join(options)})" if options else ""
    return f"{law['law']}{own}{f' of {inner}' if inner else ''}"


def _text(values: dict[str, float], name: str) -> str:
    return f"{values[name]:.3g}" if name in values else ""
