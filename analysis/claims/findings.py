"""A row per claim of a study, at each point of its sweep that it is about."""

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ...simulator.files.study import StudyError
from ...simulator.files.study.measured import metrics_of_manifest
from ...simulator.scenario.claims import Claim
from ..facts import Entry
from ..frames import Study
from .groups import names_in, points, too_few
from .measured import Measured, as_written, measure
from .sequential import ERROR, holm, least, overall
from .verdict import FAILS, HOLDS, OPEN, UNDECIDABLE, UNDECIDED, Judged

COLUMNS = (
    *("claim", "says", "origin", "verdict", "measured", "estimate", "low", "high"),
    *("replicates", "p", "corrected", "why", "at"),
)
"""Columns of findings, as `evaluate` has them."""


def evaluate(study: Study) -> pd.DataFrame:
    """Returns a row per claim of the study's scenario.

    Replicates share their randomness between variants, so differences are paired. A
    claim on variants of a sweep is judged at each of its points, or at those that its
    `at` names. A diverged run counts as the metric's worst possible value, or else as
    the worst one seen or worse.

    The evidence for and against a claim comes from its `judge`, as `Faster.judge`.

    Claims are about the median run. Tests are exact one-sided sign tests at 2.5 % on
    either side, corrected for the interim analyses of the study, if any, and by Holm
    for all its claims of one origin. Everything else is undecided, or not decidable
    where so few replicates cannot pass.

    Returns:
        Columns claim, a sentence; says, the place where the source claims it; origin,
        of `scenario.claims.ORIGINS`; verdict: holds, does not hold, undecided, or not
        decidable with so few replicates; measured, the numbers that follow as text,
        empty if nothing could be measured; estimate, the median of replicates or their
        pairs, with low and high, its interval (95 %, or the range of fewer than six);
        replicates that were measured, or pairs compared; p, two-sided, of this claim
        alone; corrected, p for all interim analyses of the study and for all its claims
        of one origin; why, the reason of the verdict; at, its point of a sweep. Numbers
        are NaN where there are none.

    Raises:
        StudyError: No run has ended, or (`DamageError`) a table that claims need is
            damaged: damage is no lack of evidence.
    """
    scenario = study.manifest["scenario"]
    told_of = metrics_of_manifest(study.manifest)
    claims = as_written(scenario.get("claims", []), told_of)
    if not claims:
        return pd.DataFrame(columns=pd.Index(COLUMNS))
    measured = measure(study, claims)
    asked = scenario.get("replicates", measured.replicates)
    return judge(measured, claims, asked, tuple(scenario.get("looks") or ()))


def judge(
    measured: Measured,
    claims: Sequence[Claim | Entry],
    replicates: int,
    looks: tuple[int, ...] = (),
) -> pd.DataFrame:
    """Returns a row per claim, as `evaluate` does, from a study's measured quantities.

    Args:
        measured: The measured quantities.
        claims: Claims.
        replicates: Planned number of replicates of the study.
        looks: Replicates at its interim analyses; none without them.
    """
    if looks:
        measured = measured.first(_last_look(replicates, looks) or replicates)
    rows = [
        finding
        for claim in as_written(claims, measured.metrics)
        for finding in weighed(measured, claim, replicates)
    ]
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    return corrected(frame, replicates, looks)


def _last_look(replicates: int, looks: tuple[int, ...]) -> int:
    """Returns the replicates by which claims are judged: those of the last look.

    What was added by hand counts for nothing, or a study could be extended until it
    says what it should.
    """
    return max((n for n in looks if n <= replicates), default=0)


def corrected(
    found: pd.DataFrame, replicates: int, looks: tuple[int, ...] = ()
) -> pd.DataFrame:
    """Returns findings with the verdicts that their p-values leave.

    The only place where anything is decided. A family are the claims of one origin in
    one study, which is one figure, table or theorem.

    Args:
        found: Columns as for `evaluate`; `verdict` is the direction of the evidence,
            however weak.
        replicates: Replicates of the study.
        looks: Replicates at its interim analyses.
    """
    chances = found["p"].to_numpy(np.float64)
    used = _last_look(replicates, looks) if looks else replicates
    # Before the first look of a plan nothing is decided.
    worth = np.array([overall(p, used, looks) if used else np.nan for p in chances])
    final, size = np.full(len(found), np.nan), np.zeros(len(found), np.int64)
    for rows in found.groupby("origin", sort=False).indices.values():
        final[rows], size[rows] = holm(worth[rows]), len(rows)
    needed = {m: least(m, looks) for m in {*size.tolist()}}
    at = _words_on_look(used, replicates, looks)
    can = np.array([(needed[m] or np.inf) <= used for m in size.tolist()], bool)
    whys = [
        why
        + ("" if np.isnan(p) else f"; {_said(p, last, m, at)}")
        + ("" if able else f"; {too_few(used, m, looks)}")
        for why, p, last, m, able in zip(
            found["why"], chances, final, size.tolist(), can, strict=True
        )
    ]
    undecided = np.where(can, OPEN, UNDECIDABLE)
    return found.assign(
        verdict=found["verdict"].where(final <= ERROR, undecided),
        corrected=np.where(np.isnan(chances), np.nan, final),
        why=whys,
    )


def _words_on_look(used: int, replicates: int, looks: tuple[int, ...]) -> str:
    if not looks:
        return ""
    number, more = sum(n <= used for n in looks), replicates - used
    beyond = f" (without {more} that were not planned)" if more else ""
    return f"interim analysis {number} at {used} of at most {looks[-1]}{beyond}, "


def _said(p: float, value: float, m: int, at: str) -> str:
    by = at + (f"by Holm among {m}" if m > 1 else "")
    said = f"p {_number(p)}"
    return f"{said}; {by.removesuffix(', ')} {_number(value)}" if by else said


def _number(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def weighed(
    measured: Measured, claim: Claim, planned: int
) -> Iterator[dict[str, object]]:
    """Yields a claim's findings before anything is decided, at each of its points."""
    named = names_in(claim)
    for names in points(measured, claim) or [()]:
        text = claim.words.join(named if claim.along_sweep else names or named)
        point = "".join(names[:1]).removeprefix(named[0]).removeprefix(", ")
        row: dict[str, object] = {"claim": text, "says": claim.says}
        row["at"] = "" if claim.along_sweep else point
        row |= {"origin": claim.origin, "verdict": OPEN, "measured": ""}
        row |= {"replicates": 0, "p": math.nan}
        if not names:
            why = f"the study has no finished runs of {_missing(measured, *named)}"
            yield row | {"why": why}
            continue
        try:
            judged: Judged = claim.judge(measured, *names)
        except StudyError as error:  # the metric was not evaluated
            yield row | {"why": str(error)}
            continue
        replicates, why, evidence = judged.replicates, judged.why, judged.evidence
        mean, low, high = judged.interval
        if replicates < planned:
            used = "compared" if claim.compares else "measured"
            why += f"; {replicates} of {planned} replicates can be {used}"
        yield row | {
            "claim": text + judged.to,
            "verdict": HOLDS if evidence.for_it < evidence.against else FAILS,
            "measured": judged.measured,
            "estimate": mean,
            "low": low,
            "high": high,
            "replicates": replicates,
            "p": evidence.p,
            "why": why,
        }


def _missing(measured: Measured, *names: str) -> str:
    missing = [
        repr(name)
        for name in names
        if name not in measured and not measured.groups(name)
    ]
    return " and ".join(missing) or f"{' and '.join(names)} at a common point"


def in_words(measured: str) -> str:
    """Returns what was measured with a ratio in words: `8.1 times as fast [4.2, 9]`.

    Below 1 it would else read as a time, or as its opposite.
    """
    words, colon, found = measured.partition(": ")
    of = re.fullmatch(r"times (faster|less|fewer) ?(.*)", words)
    if not of:
        return measured
    much = {"less": "much", "fewer": "many"}.get(of[1])
    how = f"as {much} {of[2]} for the other" if much else "as fast"
    said = re.sub(r"^((?:at (?:least|most) )?\d[\d.e+-]*)", rf"\1 times {how}", found)
    return said if said != found else f"times {how}{colon}{found}"


def number(measured: str) -> str:
    """Returns the number alone, and what it is: `difference: 0.1 [0.05, 0.2]`."""
    words, colon, found = in_words(measured).partition(";")[0].rpartition(": ")
    return f"{re.split(',| of ', words)[0]}{colon}{found}"


def sentences(found: pd.DataFrame) -> list[str]:
    """Returns what each claim says, with its point and, where these differ, origin.

    Claims in the same words name what they compare.
    """
    says, at, origin = found["says"], found["at"], found["origin"]
    alike = found.duplicated(["says", "at", "origin"], keep=False)
    others = (origin != "paper") & (len({*origin}) > 1)
    point = (" at " + at).where(at != "", "")
    compared = (" (" + found["claim"] + ")").where(alike, "")
    return (says + point + compared + (" (" + origin + ")").where(others, "")).tolist()


def all_decided(study: Study) -> bool:
    """Says whether every claim of a study holds or does not hold."""
    return not evaluate(study)["verdict"].isin(UNDECIDED).any()
