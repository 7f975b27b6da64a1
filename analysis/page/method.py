"""Description of the simulation, item by item of the checklist STRESS-DES.

Source: Monks, Currie, Onggo, Robinson, Kunc and Taylor, Strengthening the reporting of
empirical simulation studies: introducing the STRESS guidelines, Journal of Simulation
13 (1), 2018, doi 10.1080/17477778.2018.1442155; the items of STRESS-DES.
"""

from collections.abc import Iterator, Mapping, Sequence

from ...simulator.files.study import is_world, metric_of_study
from ...simulator.parts import attached
from ...simulator.parts.errors import TAGS, counted, documented_key
from .. import facts, worlds
from ..facts import Entry, worded
from ..frames import data_sets
from ..statistics import MEDIANS
from . import execution, world
from .words import UNITS, Item, Marked, Rows, about, entries, listed, shown

PARTS = ("clients", "server", "job", "protocol", "algorithm", "privacy")
OF_PROBLEM = ("model", "loss", "reduction", "l2", "transfer")
"""Entries of a scenario, and of its problem, that are parameters of the model."""
SYMBOLS = (
    "in laws and expressions m is a client's number, from 1, and M is how many there "
    "are"
)
UNKNOWN = "of a package that is not here."
"""Words on a part of a plug-in that this installation does not have."""


def checklist(manifest: Entry) -> dict[str, list[Item]]:
    """Returns the sections of the checklist, filled from the manifest of a study."""
    return {
        "1. Objectives": objectives(manifest),
        "2. Logic": logic(manifest),
        "3. Data": data(manifest),
        "4. Experimentation": execution.experimentation(manifest),
        "5. Implementation": execution.implementation(manifest),
        "6. Code access": [execution.access(manifest)],
    }


def objectives(manifest: Entry) -> list[Item]:
    """Returns the study's purpose, measurements and varied factors."""
    runs = manifest["runs"]
    question = manifest.get("question") or "The scenario states no question."
    source = [f"Source: {manifest['source']}"] if manifest.get("source") else []
    groups = counted(len({run["label"] for run in runs}), "configuration")
    variants = counted(len({run["variant"] for run in runs}), "variant")
    aims = [f"{groups} of {variants}; replicates differ in their seeds only."]
    claims = len(manifest["scenario"].get("claims") or ())
    if claims:
        aims.append(f"{counted(claims, 'claim')} to check.")
    rows = [(key, listed(values)) for key, values in swept(runs).items()]
    outputs: tuple[list[str], Rows] = (
        ([worded(manifest, worlds.report_of(manifest).OUTPUTS)], [])
        if is_world(manifest)
        else _outputs(manifest)
    )
    return [
        Item("1.1", "Purpose of the model", [question, *source]),
        Item("1.2", "Model outputs", *outputs),
        Item("1.3", "Experimentation aims", aims, rows),
    ]


def _outputs(manifest: Entry) -> tuple[list[str], Rows]:
    scenario = manifest["scenario"]
    rows: Rows = []
    for metric in scenario["evaluate"]["metrics"]:
        known = metric_of_study(manifest, str(metric))
        unit = f"{known.unit}; " if known and known.unit else ""
        text = "a metric of the user's own"
        if known:
            text = f"{known.meaning} ({unit}{known.direction})"
        rows.append((str(metric), text))
    meaning = worded(manifest, "server updates between a read and its use")
    rows.append(("staleness", meaning))
    periods = scenario["evaluate"]["every"].items()
    every = ", ".join(f"{v:g} {UNITS.get(unit, unit)}" for unit, v in periods if v)
    text = (
        f"Evaluated at the start and then every {every}. A final value is the mean of "
        f"the last tenth of a run's evaluations. Means and 95 % t-intervals are over "
        f"replicates, differences between variants are paired; times to a target are "
        f"medians, in which runs that did not reach it are censored; {MEDIANS}."
    )
    return [text], rows


def logic(manifest: Entry) -> list[Item]:
    """Returns the model's logic and the differences between variants."""
    scenario, runs = manifest["scenario"], manifest["runs"]
    changed = [
        (name, "; ".join(_changes(changes)) or "the base")
        for name, changes in (scenario.get("variants") or {}).items()
    ]
    differ = "What each variant replaces in the base." if changed else "The base alone."
    protocols = list(_described("protocols", "protocol", runs))
    algorithms = list(_described("algorithms", "algorithm", runs))
    stages = world.stages(runs)
    return [
        Item("2.1", "Base model overview", ["A job's stages."], steps=stages),
        Item("2.2", "Base model logic", protocols),
        Item("2.3", "Scenario logic", [differ], changed),
        Item("2.4", "Algorithms", algorithms or ["None: there are no numerics."]),
        Item("2.5", "Components", rows=world.components(runs)),
    ]


def _changes(changes: Entry, prefix: str = "") -> Iterator[str]:
    for key, value in changes.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value and not value.keys() & TAGS:
            yield from _changes(value, f"{name}.")
        else:
            yield f"{name} removed" if value is None else f"{name} = {shown(value)}"


def _described(kind: str, part: str, runs: Sequence[Entry]) -> Iterator[str]:
    used: dict[str, list[str]] = {}
    for run in runs:
        name = run.get(part)
        if name is not None and run["variant"] not in used.setdefault(name, []):
            used[name].append(run["variant"])
    for name, variants in used.items():
        text = " ".join(about(kind, name)) or UNKNOWN
        yield Marked(f"`{name}`: {text}")
        if len(used) > 1:
            yield f"This is what {listed(variants)} has."


def data(manifest: Entry) -> list[Item]:
    """Returns the study's inputs: data, parameters, assumptions."""
    scenario = manifest["scenario"]
    problem = scenario.get("problem") or {}
    names = data_sets(manifest)
    prepared = [
        row
        for part in ("data", "partition")
        for row in entries(problem.get(part) or {}, f"problem.{part}")
    ]
    told = ((run.get("dataset"), run.get("scaling")) for run in manifest["runs"])
    prepared += [(f"scale of {n}", said) for n, said in dict.fromkeys(told) if said]
    others = (key for kind in attached.worlds() for key in kind.entries)
    given = {key: scenario[key] for key in (*PARTS, *others) if scenario.get(key)}
    own = {key: problem[key] for key in OF_PROBLEM if problem.get(key) is not None}
    rows = [row for key, tree in given.items() for row in entries(tree, key)]
    rows += [(f"problem.{key}", shown(value)) for key, value in own.items()]
    told = map(facts.of, manifest["runs"])
    own = dict.fromkeys(of_run.get("symbols") or SYMBOLS for of_run in told)
    text = f"Of the base; {'; '.join(own)}. Where runs differ: 1.3 and 2.3."
    return [
        Item("3.1", "Data sources", list(_sources(scenario, names))),
        Item("3.2", "Pre-processing", () if prepared else ("None.",), prepared),
        Item("3.3", "Input parameters", [text], rows),
        Item("3.4", "Assumptions", world.assumptions(manifest)),
    ]


def _sources(scenario: Entry, names: list[str]) -> Iterator[str]:
    if world.imported(scenario):
        yield f"An event log, {scenario.get('source', '')}."
        return
    if "problem" not in scenario:
        yield "None: there are no numerics."
        return
    kind = str(scenario["problem"].get("data", {}).get("kind"))
    yield Marked(f"`{kind}`: {' '.join(about('data', kind)) or UNKNOWN}")
    if names and names != [kind]:
        yield f"What the runs used: {listed(names)}."


def swept(runs: Sequence[Entry]) -> dict[str, list[object]]:
    """Returns each swept key with its values, each once, and a part behind its name."""
    found: dict[str, dict[str, object]] = {}
    for run in runs:
        for key, value in run["parameters"].items():
            part = facts.at_key(run, key)
            named = isinstance(value, str) and value != part and part is not None
            told = f"{value} = {shown(part)}" if named else value
            found.setdefault(documented_key(key), {})[shown(value)] = told
    return {key: list(values.values()) for key, values in found.items()}
