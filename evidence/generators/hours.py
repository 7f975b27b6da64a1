"""What studies have cost and lack, and what more processor hours would decide.

evidence/costs.csv has estimates of minutes, of some replicates or of one run; of the
file as it is, or of another reading, which may be the paper's setting. Studies taken in
from now on say themselves how long their runs took.
"""

import csv
import json
import math
import re
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from stalesim.analysis.claims.sequential import least
from stalesim.simulator.scenario.reading import read

from .. import papers, power, rejudge
from .. import rows as experiments
from .formulas import markdown

COSTS = experiments.ROOT / "evidence" / "costs.csv"
OF_RUN = "run"
BUDGET = 10
"""Processor hours of the list of what is next."""
RECORDED = "elapsed_s"
"""Entry of about.json: seconds of all runs that are judged, each in one process."""
SEARCHED = "tuning_s"
"""Entry of about.json: seconds of all trials of a comparison, likewise."""
NOT_RECORDED, NOT_RUN = "not recorded", "not run"
PART = re.compile(r"5k\b")
"""What the names of data have that are not the whole of the real set."""


class Estimated(NamedTuple):
    """One estimate.

    Attributes:
        minutes: Minutes of a core for one replicate.
        reading: what it is of, where that is not the file as it is.
        paper: whether that is the paper's setting.
    """

    minutes: float
    reading: str
    paper: bool = False


class Studied(NamedTuple):
    """A scenario that is judged, with what is kept of its study.

    Attributes:
        scenario: its file in scenarios/, without the ending.
        rows: ids of the experiments that name it.
        about: Contents of about.json; empty if there are no results.
        kept: whether the numbers of its runs are.
        claims: a row for each of its claims, at each point: origin, says, open
            (whether it is undecided), needed (replicates that may decide it; nan where
            nothing is known to).
        deciding: least replicates that can decide a claim of its largest family.
        compares: whether its values are searched by trials before it is judged.
    """

    scenario: str
    rows: str
    about: dict[str, Any]
    kept: bool
    claims: pd.DataFrame
    deciding: int
    compares: bool

    @property
    def replicates(self) -> int:
        """Replicates there are."""
        return self.about.get("replicates", 0)

    @property
    def real(self) -> bool:
        """Whether what was read are all of some real data."""
        data = self.about.get("dataset") or "synthetic"
        return not (PART.search(data) or data.startswith("synthetic"))

    @property
    def on_gpu(self) -> bool:
        """Whether what there is of it was run on a GPU."""
        return self.about.get("environment", {}).get("backend") == "gpu"

    @property
    def search_unknown(self) -> bool:
        """Whether its hours are without those of its trials, which were not kept."""
        return RECORDED in self.about and self.compares and SEARCHED not in self.about

    @property
    def link(self) -> str:
        """Its name, which leads to its file."""
        return f"[{self.scenario}](../../scenarios/{self.scenario}.yaml)"


@cache
def studies() -> list[Studied]:
    """Returns the papers' scenarios, and all others that have verdicts."""
    listed = experiments.read(experiments.ROOT / experiments.LISTED)
    ids: dict[str, list[str]] = {}
    for row in listed:
        for scenario in row.scenarios:
            ids.setdefault(scenario, []).append(row.id)
    for path in sorted(rejudge.RESULTS.glob("*/claims.csv")):
        file = experiments.file_of(path.parent.name)
        ids.setdefault(file.removeprefix("scenarios/").removesuffix(".yaml"), [])
    needed = power.needed()
    found = (_studied(name, ", ".join(of), needed) for name, of in sorted(ids.items()))
    return [one for one in found if one is not None and len(one.claims)]


def _studied(
    scenario: str, rows: str, needed: dict[tuple[str, ...], str]
) -> Studied | None:
    path = experiments.ROOT / f"scenarios/{scenario}.yaml"
    folder = rejudge.RESULTS / experiments.name_of(path)
    about, kept = {}, (folder / "values.csv").exists()
    if (folder / "claims.csv").exists():
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        claims = pd.read_csv(folder / "claims.csv", keep_default_na=False)
    else:
        if "\nclaims:" not in path.read_text(encoding="utf-8"):
            return None  # a world, or an attack
        planned = read(path)
        says = [(c.origin, c.says) for c, _ in rejudge.of_points(planned)]
        claims = pd.DataFrame(says, columns=pd.Index(["origin", "says"]))
        claims = claims.assign(claim="", verdict=experiments.OPEN)
        about = {"asked": planned.replicates}
    sizes = claims.groupby("origin")["says"].transform("size")
    enough = [least(size) or 0 for size in sizes]
    claims = claims.assign(open=claims["verdict"].isin(power.UNDECIDED))
    asked = about.pop("asked", about.get("replicates", 0))
    claims["needed"] = pd.Series(enough).clip(lower=asked).to_numpy()
    if kept:
        keys = claims.assign(study=folder.name)[power.KEY]
        said = [needed.get(key) for key in keys.itertuples(index=False, name=None)]
        claims["needed"] = pd.to_numeric(pd.Series(said, dtype=object), "coerce")
    compares = "\ncompare:" in path.read_text(encoding="utf-8")
    return Studied(
        scenario, rows, about, kept, claims, max(enough, default=0), compares
    )


@cache
def costs() -> dict[str, list[Estimated]]:
    """Returns the estimates for each scenario, in the order of the file."""
    found: dict[str, list[Estimated]] = {}
    with COSTS.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            minutes = float(line["minutes"] or "nan")
            if line["of"] == OF_RUN:
                minutes *= _groups(line["scenario"])
            elif line["of"]:
                minutes /= int(line["of"])
            found.setdefault(line["scenario"], []).append(
                Estimated(minutes, line["reading"], line["setting"] == "paper")
            )
    return found


def _groups(scenario: str) -> int:
    """Returns how many runs a replicate of a study has."""
    name = experiments.name_of(experiments.ROOT / f"scenarios/{scenario}.yaml")
    return len(pd.read_csv(rejudge.RESULTS / name / "summary.csv"))


def cost(scenario: str, *, as_it_is: bool) -> Estimated:
    """Returns an estimate, of the file as it is or of another reading of the paper.

    If there is none of that, it is the other one; nan minutes without any. What the
    paper's setting takes is no estimate of the file.
    """
    found = [c for c in costs().get(scenario, []) if not (as_it_is and c.paper)]
    found.sort(key=lambda c: bool(c.reading) == as_it_is)
    return found[0] if found else Estimated(math.nan, "")


def spent(study: Studied) -> tuple[str, float]:
    """Returns the processor hours of a study, in words and as a number."""
    estimate = of_file(study)
    if study.on_gpu:
        return f"{_known(study.about[RECORDED] / 3600)} of a GPU", 0.0
    if not study.about or math.isnan(estimate.minutes):
        return (NOT_RECORDED if study.about else NOT_RUN), 0.0
    hours = hours_of(study, estimate, study.replicates)
    about = "" if RECORDED in study.about else "about "
    return f"{about}{_known(hours)}", hours


def hours_of(study: Studied, estimate: Estimated, replicates: int) -> float:
    """Returns the hours of some replicates, and of the trials that are known."""
    trials = 0 if study.on_gpu else study.about.get(SEARCHED, 0)
    return estimate.minutes * replicates / 60 + trials / 3600


def of_file(study: Studied) -> Estimated:
    """Returns what a study takes as its file is: as recorded, or an estimate.

    Of a core: what a GPU took is no measure of that.
    """
    if RECORDED in study.about and not study.on_gpu:
        return Estimated(study.about[RECORDED] / 60 / study.replicates, "")
    return cost(study.scenario, as_it_is=True)


def _known(number: Any, unknown: str = "no estimate", form: str = "{:.2f}") -> str:
    """Returns a number in words, also where it is nan."""
    return unknown if math.isnan(number) else form.format(number)


class Offered(NamedTuple):
    """What a study would buy at the paper's setting.

    Attributes:
        study: The study.
        to: Replicates of it.
        estimate: What one of them takes.
        decides: Sentences that are open, and about which it is.
        adds: Sentences of which its panel does not count yet.
    """

    study: Studied
    to: int
    estimate: Estimated
    decides: frozenset[papers.Sentence]
    adds: frozenset[papers.Sentence]

    @property
    def hours(self) -> float:
        """Hours of all its replicates; nan where they are a GPU's."""
        return hours_of(self.study, self.estimate, self.to)

    def worth(self, known: frozenset[papers.Sentence]) -> tuple[float, float, int]:
        """Returns new sentences an hour, other panels an hour, and new sentences."""
        new = self.decides - known
        if math.isnan(self.hours):
            return 0.0, 0.0, len(new)
        return len(new) / self.hours, len(self.adds - new) / self.hours, len(new)


def offers() -> list[Offered]:
    """Returns what studies would buy that are at the paper's setting, or can be.

    A line of costs.csv says that a file can have it. As it is, a study offers
    the sentences that more replicates may decide.
    """
    judged, aside = papers.judge(), experiments.apart()
    found = (_offered(study, judged, aside) for study in studies())
    return [one for one in found if one is not None and one.decides | one.adds]


def _offered(
    study: Studied, judged: list[papers.Assessed], aside: list[experiments.Apart]
) -> Offered | None:
    claims = study.claims[study.claims["origin"] == experiments.PAPER]
    whole = next((c for c in costs().get(study.scenario, []) if c.paper), None)
    never = {experiments.CONTENT, *([] if whole else [experiments.SETTING])}
    kept = [
        not any(
            one.kind in never and one.is_about(study.scenario, says) for one in aside
        )
        for says in claims["says"]
    ]
    claims = claims.loc[pd.Series(kept, claims.index, dtype=bool)]
    if whole:
        mine = [one for one in judged if one.has(study.scenario, claims["says"])]
        to = max(study.deciding, study.replicates)
        panel = papers.panel(study.scenario)
        adds = frozenset(one.sentence for one in mine if panel not in one.counted)
        return Offered(study, to, whole, _open(mine), adds)
    claims = claims[claims["open"] & (claims["needed"] > study.replicates)]
    if not (study.real and study.kept and len(claims)):
        return None
    asked = claims["needed"].astype(int)
    to = max(sorted({*asked}), key=lambda n: (asked <= n).sum() / n)
    says = claims.loc[asked <= to, "says"]
    mine = [one for one in judged if not one.why and one.has(study.scenario, says)]
    return Offered(study, to, of_file(study), _open(mine), frozenset())


def _open(found: list[papers.Assessed]) -> frozenset[papers.Sentence]:
    return frozenset(one.sentence for one in found if one.verdict == papers.UNSURE)


def plan() -> pd.DataFrame:
    """Returns what studies would buy, best first, each sentence once.

    Returns:
        Columns study, rows, replicates, to (replicates), sentences (that no study
        before it may decide), panels (of other sentences), hours (nan where they are
        a GPU's), as (words for the setting).
    """
    left, lines = offers(), []
    known: frozenset[papers.Sentence] = frozenset()
    while left:
        best = max(left, key=lambda one: one.worth(known))
        left.remove(best)
        new, study = best.decides - known, best.study
        known |= new
        line = study.link, study.rows, study.replicates, best.to, len(new)
        more = len(best.adds - new)
        if new or more:
            lines.append((*line, more, best.hours, best.estimate.reading))
    columns = ["study", "rows", "replicates", "to", "sentences", "panels", "hours"]
    return pd.DataFrame(lines, columns=pd.Index([*columns, "as"]))


def hours() -> str:
    """Returns the table of what the next hours would decide."""
    table = plan()
    so_far, fits = 0.0, []
    for each in table["hours"]:
        fits.append(so_far + each <= BUDGET)
        so_far += each if fits[-1] else 0.0
    near = table[pd.Series(fits, table.index, dtype=bool)]
    names = ", ".join(
        f"{row.study} ({_known(row.hours)})" for row in near.itertuples(index=False)
    )
    gained = near[["hours", "sentences", "panels"]].sum()
    rate = table["sentences"] / table["hours"]
    shown = table.assign(
        hours=table["hours"].map(_known),
        rate=[_known(number, "", "{:.1f}") for number in rate],
    ).rename(columns={"rate": "sentences an hour"})
    return (
        f"The next {BUDGET} hours, best first: {names}; together "
        f"{_known(gained['hours'])} hours, at most {gained['sentences']:.0f} sentences "
        f"that would count, and {gained['panels']:.0f} more panels of others.\n\n"
        f"{markdown(shown)}"
    )


def by_row() -> str:
    """Returns the hours spent on each row, and where they are from."""
    every = {study.scenario: (study, *spent(study)) for study in studies()}
    lines, unknown = [], []
    for row in experiments.read(experiments.ROOT / experiments.LISTED):
        mine = [every[name] for name in row.scenarios if name in every]
        mine = [one for one in mine if one[1] != NOT_RUN]
        if any(said != NOT_RECORDED for _, said, _ in mine):
            each = ", ".join(f"{study.link} {said}" for study, said, _ in mine)
            hours = sum(number for *_, number in mine)
            lines.append((row.id, _known(hours) if hours else "of a GPU", each))
        elif mine:
            unknown.append(row.id)
    total = sum(number for *_, number in every.values())
    table = pd.DataFrame(lines, columns=pd.Index(["row", "hours", "of"]))
    return (
        f"{markdown(table)}\n\nAll studies whose hours are known or estimated, also "
        f"those of no row, took {_known(total)}. Not recorded: {', '.join(unknown)}."
        f"{_searches()}"
    )


def _searches() -> str:
    names = [one.link for one in studies() if one.search_unknown]
    if not names:
        return ""
    return f" Without their trials, whose times were not kept: {', '.join(names)}."


def lacking() -> str:
    """Returns the table of what the papers' studies lack."""
    aside = [one for one in experiments.apart() if one.kind == experiments.SETTING]
    lines = []
    for study in studies():
        if not study.rows:
            continue
        why = [
            one.why
            for one in aside
            if any(one.is_about(study.scenario, says) for says in study.claims["says"])
        ]
        want = max(study.deciding, study.replicates)
        data = study.about.get("dataset") or ""
        whole = PART.sub("", data)
        lacks = [data != whole, study.replicates < want, not study.kept, *why]
        if not any(lacks):
            continue
        estimate = cost(study.scenario, as_it_is=False)
        without = "not kept" if study.about else NOT_RUN
        lines.append(
            (
                study.link,
                study.rows,
                f"{study.replicates} of {want}" if study.replicates < want else want,
                f"{data} for {whole}" if data != whole else data,
                "" if study.kept else without,
                "; ".join(dict.fromkeys(why)),
                _known(estimate.minutes * want, form="{:.0f}"),
                estimate.reading,
            )
        )
    columns = ["study", "rows", "replicates", "data", "numbers of runs"]
    columns += ["not at the paper's setting", "minutes", "as"]
    return markdown(pd.DataFrame(lines, columns=pd.Index(columns)))
