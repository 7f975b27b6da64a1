"""The checklist's second half: experimentation, implementation and code access."""

from collections import Counter

from ...simulator.files.study import MACHINE
from ...simulator.parts.errors import counted, ranges
from ...simulator.scenario.grid import REPLICATES, ZIPPED
from .. import facts
from ..facts import Entry, worded
from . import world
from .repeating import sessions
from .runs import ended
from .words import UNITS, Item, duration, entries, listed, span

SIMPY = (
    "Event scheduling on SimPy's event loop, in virtual time; at one time events "
    "happen by priority, then in the order in which they were scheduled."
)
GENERATORS = (
    "The world is drawn by NumPy's counter-based generator Philox, each number by "
    "(seed, purpose, client, position), and laws by inversion; what is drawn in the "
    "numerics comes from keys of jax.random, made of the run's seed."
)


def experimentation(manifest: Entry) -> list[Item]:
    """Returns the beginning, end, length and number of runs."""
    scenario, done = manifest["scenario"], ended(manifest)
    begin = (
        f"Terminating: a run begins at virtual time 0 with no job under way, and ends "
        f"{_end(scenario)}. Warm-up: none; everything from time 0 on is recorded."
    )
    updates = worded(manifest, "server updates")
    lengths = [
        ("time", span((run["virtual_s"] for run in done), "virtual s")),
        (updates, span((run["commits"] for run in done), updates)),
    ]
    planned = scenario.get("replicates", 1)
    numbers = span(Counter(run["label"] for run in done).values(), "of them ended")
    text = f"Independent replicates: {planned} planned of each variant, {numbers}."
    if REPLICATES in scenario.get("sweep", {}).get(ZIPPED, {}):
        text = f"Independent replicates: as the sweep has them, {numbers}."
    elif planned == 1:
        text += " Nothing can be said of chance."
    return [
        Item("4.1", "Initialisation", [begin]),
        Item("4.2", "Run length", ["Of runs that have ended."], lengths),
        Item("4.3", "Estimation approach", [text]),
    ]


def _end(scenario: Entry) -> str:
    if world.imported(scenario):
        return "with the last job of the log"
    stops = [(key[1:], value) for key, value in entries(scenario["stop"], "")]
    limits = [f"{key} {value} {UNITS.get(key, '')}".strip() for key, value in stops]
    which = ", whichever comes first" if len(limits) > 1 else ""
    return f"at {' or '.join(limits)}{which}"


def implementation(manifest: Entry) -> list[Item]:
    """Returns the software, hardware and time of the study's computation."""
    environment, runs = manifest.get("environment") or {}, manifest["runs"]
    software = [(k, str(v)) for k, v in environment.items() if k not in MACHINE]
    machine = [(k, str(v)) for k, v in environment.items() if k in MACHINE]
    modes = Counter(run["mode"] for run in runs if "mode" in run)
    how = [(mode, counted(number, "run")) for mode, number in modes.items()]
    own = dict.fromkeys(facts.of(run).get("scheduling") or SIMPY for run in runs)
    execution = " ".join(own)
    if modes:
        execution += " The numerics follow the recorded order of events, in JAX."
    if world.imported(manifest["scenario"]):
        execution = "None: the log was read."
    elapsed = duration(sum(run["elapsed_s"] for run in ended(manifest)))
    text = f"The runs that have ended took {elapsed} of real time together; processes "
    text += "may have shared them."
    return [
        Item("5.1", "Software", rows=software),
        Item("5.2", "Random sampling", _sampling(manifest)),
        Item("5.3", "Model execution", [execution], how),
        Item("5.4", "System specification", [text], machine),
    ]


def _sampling(manifest: Entry) -> list[str]:
    scenario, runs = manifest["scenario"], manifest["runs"]
    if world.imported(scenario):
        return ["Nothing is drawn."]
    seeds: dict[int, set[int]] = {}
    for run in runs:
        seeds.setdefault(run["replicate"], set()).add(run["seed"])
    same = {k: next(iter(values)) for k, values in seeds.items() if len(values) == 1}
    own = listed(f"{k}: {seed}" for k, seed in sorted(same.items()))
    found = [GENERATORS, f"Seed of the study: {scenario.get('seed', 0)}."]
    if same:
        found.append(f"Seeds of the replicates: {own}.")
    if len(same) < len(seeds):
        found.append(
            f"Variants differ in the seeds of replicates {ranges(seeds.keys() - same)}."
        )
    elif len({run["label"] for run in runs}) > 1:
        found.append(
            "Common random numbers: a replicate has the same seed in all variants, "
            "which pairs the differences between them."
        )
    return found


def access(manifest: Entry) -> Item:
    """Returns the way to get the same program."""
    version = (manifest.get("environment") or {}).get("stalesim", "of unknown version")
    text = [f"Simulated by stalesim {version}. The scenario and commands stand below."]
    states = dict.fromkeys(map(_state, sessions(manifest)))
    text.append(f"The program's git commit: {', then '.join(states)}.")
    return Item("6.1", "Computer model sharing statement", text)


def _state(session: Entry) -> str:
    commit = session.get("commit")
    if not commit:
        return "not known"
    return f"{commit} with local changes" if session.get("dirty") else str(commit)
