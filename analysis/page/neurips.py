"""The paper checklist of NeurIPS, filled from a study as far as it tells.

Source: NeurIPS Paper Checklist (2025), its sixteen items in our words.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...simulator.config.catalogue import parts
from ...simulator.config.parts import tag
from ...simulator.config.text import counted
from ...simulator.trace import MACHINE
from .. import claims, summary
from ..frames import Study, data_sets
from ..statistics import LEVEL, MEDIANS
from . import runs
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


class Answer(NamedTuple):
    """One item of the checklist of NeurIPS.

    Attributes:
        title: Title of the item.
        question: What it asks, in our words.
        facts: What the study tells of it; none where it tells nothing.
        ask: What its author has to answer, or to check.
    """

    title: str
    question: str
    facts: list[str]
    ask: str = ""


def filled(study: Study, mark: str) -> str:
    """Returns the checklist as Markdown.

    Args:
        study: Study with numerics, of which runs have ended.
        mark: Mark of what is left open.
    """
    lines = [
        f"# NeurIPS paper checklist: {study.manifest['name']}",
        "",
        "Filled by stalesim from what it recorded of this study. What stands after",
        f"{mark} is for its author; a paper with more than this study needs more.",
        "",
    ]
    for number, answer in enumerate(_answers(study), start=1):
        lines += [f"## {number}. {answer.title}", "", f"*{answer.question}*", ""]
        if answer.facts:
            lines += ["From the study:", "", *(f"- {one}" for one in answer.facts), ""]
        if answer.ask or not answer.facts:
            lines += [f"{mark} {answer.ask}".rstrip(), ""]
    return "\n".join(lines)


def _answers(study: Study) -> Iterator[Answer]:
    """Yields the sixteen items, in the order of the checklist."""
    manifest = study.manifest
    scenario = manifest["scenario"]
    yield Answer(
        "Claims",
        "Do abstract and introduction claim what the paper shows, and no more?",
        _verdicts(study),
        "Does the paper claim what does not hold or is undecided here?",
    )
    yield Answer(
        "Limitations",
        "Are the limitations discussed?",
        _limits(study),
        "Which assumptions are strong, and how far do the results carry?",
    )
    yield Answer(
        "Theory assumptions and proofs",
        "Has each theoretical result its assumptions and a proof?",
        [],
    )
    yield Answer(
        "Experimental result reproducibility",
        "Is all said that it takes to reproduce the main results?",
        [
            REPEATED,
            f"Seed of the study: {scenario.get('seed', 0)}.",
        ],
    )
    yield Answer(
        "Open access to data and code",
        "Are data and code open, with instructions?",
        [_program(manifest), *_data(manifest)],
        "Under which address are the scenario, the capsule and the code published?",
    )
    yield Answer(
        "Experimental setting/details",
        "Are all details of training and test said (splits, hyperparameters, how they "
        "were chosen, optimiser)?",
        [
            RESOLVED,
            *_swept(manifest),
        ],
        "How were the values chosen that the scenario fixes?",
    )
    yield Answer(
        "Experiment statistical significance",
        "Are there error bars, or other words on statistical significance, and is it "
        "said what they are?",
        _statistics(study),
    )
    yield Answer(
        "Experiments compute resources",
        "Is it reported what the runs needed (type of workers, memory, time)?",
        _compute(manifest),
        "What did runs take that are not in this study (tuning, failed attempts)?",
    )
    yield Answer("Code of ethics", "Does it conform to the NeurIPS code of ethics?", [])
    yield Answer(
        "Broader impacts", "Are good and bad effects on society discussed?", []
    )
    yield Answer(
        "Safeguards",
        "Are there safeguards for releases with a high risk of misuse?",
        [],
    )
    yield Answer(
        "Licenses for existing assets",
        "Are creators credited, and licences named and respected?",
        [
            "stalesim: Apache-2.0; `stalesim cite FOLDER` prints what to cite.",
            *_data(manifest),
        ],
        "Do these licences allow the use that the paper makes of the data?",
    )
    yield Answer(
        "New assets",
        "Are new assets documented, and is the documentation given with them?",
        [],
    )
    yield Answer(
        "Crowdsourcing and research with human subjects",
        "Are instructions to participants, and their pay, said?",
        [],
    )
    yield Answer(
        "Institutional review board approvals",
        "Are risks to participants, and approvals, said?",
        [],
    )
    yield Answer(
        "Declaration of LLM usage",
        "Is the use of language models said, where it is a part of the method?",
        [],
    )


def _verdicts(study: Study) -> list[str]:
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


def _limits(study: Study) -> list[str]:
    manifest = study.manifest
    stand_ins = [name for name in data_sets(manifest) if "-standin" in name]
    found = ["Time is virtual: delays are drawn from laws, or replayed, not measured."]
    if stand_ins:
        found.append(
            f"Stand-ins took the place of data: {listed(stand_ins)}; {summary.WORTH}."
        )
    _, complete = runs.status(manifest)
    if not complete:
        found.append("The study is not complete: some runs are missing or failed.")
    lost = sum(run["stop"] == "diverged" for run in manifest["runs"])
    if lost:
        found.append(f"{counted(lost, 'run')} diverged, and counts as the worst value.")
    return found


def _program(manifest: dict[str, Any]) -> str:
    version = (manifest.get("environment") or {}).get("stalesim", "of unknown version")
    commit = manifest.get("commit")
    changed = ", with local changes that are in no commit" * bool(manifest.get("dirty"))
    return f"Program: stalesim {version}" + (
        f", commit {commit}{changed}." if commit else "."
    )


def _data(manifest: dict[str, Any]) -> list[str]:
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


def _swept(manifest: dict[str, Any]) -> list[str]:
    keys: dict[str, dict[str, None]] = {}
    for run in manifest["runs"]:
        for key, value in run["parameters"].items():
            keys.setdefault(key, {})[str(value)] = None
    return [f"Swept: {key} over {listed(values)}." for key, values in keys.items()]


def _statistics(study: Study) -> list[str]:
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


def _compute(manifest: dict[str, Any]) -> list[str]:
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
