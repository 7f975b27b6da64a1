"""What a study tells of itself for a checklist, in sentences: facts for templates."""

from typing import Any

from ...simulator.config.catalogue import parts
from ...simulator.config.parts import tag
from ...simulator.config.text import counted
from ...simulator.trace import MACHINE
from .. import claims
from ..frames import Study
from ..markup import markdown
from ..statistics import LEVEL, MEDIANS
from . import runs
from .design import swept
from .words import duration, listed

REPEATED = (
    "One file repeats the study and compares verdicts and traces: `stalesim capsule`, "
    "then `stalesim rerun CAPSULE`. Random numbers are keyed by seed, purpose and "
    "client, so that the same machine gives the same bits."
)
RESOLVED = (
    "The resolved scenario has every entry, defaults included: `scenario.yaml` in the "
    "capsule, and at the end of the report."
)
PAIRED = (
    "A replicate has a seed of its own, common to all groups, from which all is drawn "
    "that is random in the scenario: delays, batches, the division of the data, "
    "initial weights."
)
REPLAYED = "Delays are the recorded ones in all replicates: the timeline is replayed."


def repeated(manifest: dict[str, Any]) -> list[str]:
    """Returns how the study is repeated."""
    return [REPEATED, f"Seed of the study: {manifest['scenario'].get('seed', 0)}."]


def verdicts(study: Study) -> list[str]:
    """Returns the verdict on each claim, and how many of each there are."""
    found = claims.evaluate(study)
    if found.empty:
        return ["The scenario makes no claims: nothing was judged."]
    rows: Any = found.itertuples()
    return [
        f"{counted(len(found), 'verdict')}: {claims.in_words(found)}.",
        *(
            f"{row.verdict}: {row.claim} ({row.measured or 'not measured'})"
            for row in rows
        ),
    ]


def table_of_claims(study: Study) -> str:
    """Returns claims, evidence and verdicts as a table in Markdown."""
    found = claims.evaluate(study)
    if found.empty:
        return "No claims: the scenario makes none, and nothing was judged.\n"
    names = {"claim": "claim", "says": "as its source says it", "origin": "of"}
    names |= {
        "measured": "evidence",
        "replicates": "replicates",
        "corrected": "p, corrected",
    }
    return markdown(found.rename(columns=names)[[*names.values(), "verdict"]])


def limits(study: Study) -> list[str]:
    """Returns what weakens the study, as far as it is recorded."""
    manifest = study.manifest
    found = ["Time is virtual: delays are drawn from laws, or replayed, not measured."]
    _, complete = runs.status(manifest)
    if not complete:
        found.append("The study is not complete: some runs are missing or failed.")
    lost = sum(run["stop"] == "diverged" for run in manifest["runs"])
    if lost:
        found.append(f"{counted(lost, 'run')} diverged, and counts as the worst value.")
    return found


def program(manifest: dict[str, Any]) -> str:
    """Returns version and commit of the program."""
    version = (manifest.get("environment") or {}).get("stalesim", "of unknown version")
    commit = manifest.get("commit")
    changed = ", with local changes that are in no commit" * bool(manifest.get("dirty"))
    return f"Program: stalesim {version}" + (
        f", commit {commit}{changed}." if commit else "."
    )


def data(manifest: dict[str, Any]) -> list[str]:
    """Returns the data sets with origin and licence, as far as they are known."""
    known = {tag(part): getattr(part, "published", None) for part in parts("data")}
    kinds: dict[str, dict[str, None]] = {}
    for run in manifest["runs"]:
        problem = (run.get("scenario") or {}).get("problem") or {}
        kind = str((problem.get("data") or {}).get("kind"))
        kinds.setdefault(kind, {})[str(run.get("dataset") or kind)] = None
    found = []
    for kind, names in kinds.items():
        published = known.get(kind)
        if published is None:
            found.append(
                f"Data {listed(names)}: of no published set that stalesim has a record "
                f"of; state its licence."
            )
        else:
            about = f"{published.origin}; licence: {published.licence}"
            found.append(f"Data {listed(names)}: {about}.")
    found += [
        f"File {name}: SHA-256 {told['sha256']}."
        for name, told in (manifest.get("inputs") or {}).items()
    ]
    return found


def settings(manifest: dict[str, Any]) -> list[str]:
    """Returns where all values stand, and which were swept."""
    told = swept(manifest["runs"]).items()
    return [RESOLVED, *(f"Swept: {key} over {listed(each)}." for key, each in told)]


def statistics(study: Study) -> list[str]:
    """Returns what bars, intervals and verdicts are, and of how many replicates."""
    scenario = study.manifest["scenario"]
    replicates = int(scenario.get("replicates", 1))
    if replicates < 2:
        return ["One replicate: there are no error bars, and nothing can be said."]
    level = f"{100 * LEVEL:g} %"
    looks = scenario.get("looks")
    planned = f", looked at after {listed(map(str, looks))}" if looks else ""
    return [
        f"{replicates} independent replicates of each group{planned}.",
        PAIRED,
        *[REPLAYED] * bool((scenario.get("timeline") or {}).get("replay")),
        f"Error bars and bands: {level} t-intervals of the mean over replicates.",
        f"Times to a target: medians with {level} intervals; {MEDIANS}.",
        "Claims are judged by paired sign tests, corrected by Holm for their number.",
        "Each figure's `.txt` file says what its bars and bands are.",
    ]


def compute(manifest: dict[str, Any]) -> list[str]:
    """Returns machine and real time."""
    environment = manifest.get("environment") or {}
    machine = [f"{name} {environment[name]}" for name in MACHINE if name in environment]
    elapsed = [run["elapsed_s"] for run in manifest["runs"] if run.get("elapsed_s")]
    found = [f"Machine: {', '.join(machine)}."] if machine else []
    if elapsed:
        each = duration(max(elapsed))
        found.append(
            f"{counted(len(elapsed), 'run')} took {duration(sum(elapsed))} of real "
            f"time together, {each} the longest; processes may have shared it. Memory "
            f"was not recorded."
        )
    return found
