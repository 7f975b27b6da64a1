"""Runs of a scenario: its variants, sweep points and replicates."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import ValidationError

from ..parts.base import LocatedError
from ..parts.errors import (
    LONGEST,
    TAGS,
    ScenarioError,
    advice,
    documented_key,
    printed,
    shortened,
    shown,
)
from ..parts.messages import first_error
from ..problem.data.parts import OF_REPLICATE
from . import claimed, grid
from .dialect import Inherited, Keys, filled, of_another
from .setting import Varied

S = TypeVar("S", bound=Varied)
BASE = "base"
"""Name of the only variant of a scenario without variants."""
MOST_RUNS = 20_000
"""Most runs of a study: each takes 3 kB in its manifest, which is read as a whole."""
DEEPEST = 100
"""Most parts of a dotted key: no entry of a scenario is as deep."""
OF_STUDY = (
    *("name", "seed", "replicates", "record"),
    *("variants", "sweep", "claims", "looks", "tune", "compare"),
)
"""Entries that are the same for all runs of a study."""


class Run(NamedTuple):
    """One run of a study.

    Attributes:
        number: Number in the study, from 0, by variants, sweep points and replicates.
        variant: Name of the variant, or `base`.
        parameters: Swept keys and their values, or the names of these.
        replicate: Number of the replicate, from 0.
        seed: Seed of everything random; the same for a replicate in all variants and
            sweep points, so that differences are paired.
        scenario: Resolved scenario, without variants, sweep and replicates; of the
            study's class, such as `Scenario`.
    """

    number: int
    variant: str
    parameters: dict[str, object]
    replicate: int
    seed: int
    scenario: Any

    @property
    def label(self) -> str:
        """Variant and swept values, for tables and figures."""
        names = short_names(tuple(self.parameters))
        values = [
            f"{names[key]}={printed(value)}" for key, value in self.parameters.items()
        ]
        return ", ".join([self.variant, *values])

    @property
    def identity(self) -> dict[str, object]:
        """Entries of a manifest that identify the run."""
        return {
            "run": self.number,
            "label": self.label,
            "variant": self.variant,
            "parameters": self.parameters,
            "replicate": self.replicate,
            "seed": self.seed,
        }


class VariantError(LocatedError):
    """A variant, swept value or claim that does not fit the scenario.

    `keys` are its place in the scenario.
    """


def expand(scenario: Varied) -> list[Run]:
    """Returns every run of a study.

    Raises:
        VariantError: A variant or a swept value does not give a valid scenario, or a
            claim names none.
    """
    _check_study_wide(scenario)
    _check_number(scenario)
    base = scenario.model_dump(mode="json") | {
        "variants": {},
        "sweep": {},
        "replicates": 1,
    }
    base.pop("compare", None)  # what was found of all variants is none of a run's
    runs: list[Run] = []
    named: dict[tuple[str, str], object] = {}
    for variant, (changes, _) in _variants(scenario).items():
        own = {key: value for key, value in changes.items() if key != "sweep"}
        tree = merge(base, own) if own else base
        for point in _points(scenario, variant, changes):
            if own and "sweep" not in changes:
                _refuse_overwriting(scenario, variant, point)
            replicates = _replicates(point, scenario)
            resolved = _resolved(tree, variant, changes, point, scenario)
            _check_names(point, named)
            values = {k: each.name or each.value for k, each in point.items()}
            for replicate in range(replicates):
                seed = replicate_seed(scenario.seed, replicate)
                mine = _divided(resolved, seed)
                runs.append(Run(len(runs), variant, values, replicate, seed, mine))
    try:
        if claims := getattr(scenario, "claims", ()):
            claimed.check(claims, _swept(runs), _evaluated(runs))
    except LocatedError as error:
        raise VariantError(str(error), error.keys) from None
    return runs


def _check_names(point: grid.Point, named: dict[tuple[str, str], object]) -> None:
    """Refuses a name that stands for another value in another variant."""
    for key, each in point.items():
        if each.name and named.setdefault((key, each.name), each.value) != each.value:
            raise VariantError(
                f"sweep.{key} must have a name for one value alone, got {each.name!r} "
                f"for {shown(each.value)} as well; name it otherwise in one variant",
                ("sweep", key),
            )


def inherited(scenario: Varied) -> dict[str, list[Inherited]]:
    """Returns the settings that each variant of another kind inherits from the base."""
    return {name: told for name, (_, told) in _variants(scenario).items() if told}


def _variants(
    scenario: Varied,
) -> dict[str, tuple[Mapping[str, object], list[Inherited]]]:
    """Returns every variant's changes, with what they inherit, and what that is."""
    if not scenario.variants:
        return {BASE: ({}, [])}
    found: dict[str, tuple[Mapping[str, object], list[Inherited]]] = {}
    written = scenario.model_dump(mode="json", exclude_unset=True)
    for variant, changes in scenario.variants.items():
        try:
            found[variant] = filled(changes, written, type(scenario))
        except LocatedError as error:
            raise VariantError(
                f"variants.{variant}.{error}", ("variants", variant, *error.keys)
            ) from None
    return found


def check(scenario: Varied) -> None:
    """Refuses what `expand` refuses, without making every replicate."""
    _check_number(scenario)
    expand(scenario.model_copy(update={"replicates": 1}))


def _divided(scenario: S, seed: int) -> S:
    """Returns a scenario whose division of the data is that of a replicate, if so said.

    The number takes the word's place, so that what a run depends on names it.
    """
    problem = getattr(scenario, "problem", None)
    if problem is None or getattr(problem.data, "split_seed", 0) != OF_REPLICATE:
        return scenario
    data = problem.data.model_copy(update={"split_seed": seed})
    problem = problem.model_copy(update={"data": data})
    return scenario.model_copy(update={"problem": problem})


def _replicates(point: grid.Point, scenario: Varied) -> int:
    """Takes out of a point how many replicates it has; by default the study's."""
    own = point.pop(grid.REPLICATES, None)
    given = own.value if own else None
    return given if isinstance(given, int) else scenario.replicates


def replicate_seed(seed: int, replicate: int) -> int:
    """Returns the seed of one replicate, below 2**32, from the seed of the study."""
    sequence = np.random.SeedSequence(seed, spawn_key=(replicate,))
    return int(sequence.generate_state(1, np.uint32)[0])


def merge(
    tree: Mapping[str, object],
    changes: Mapping[str, object],
    *,
    nulls_remove: bool = True,
) -> dict[str, object]:
    """Returns a tree with some entries replaced, and those of value null removed.

    A mapping is merged into the one that it meets, unless it names another `kind` or
    `law`: then it replaces it.

    Args:
        tree: Nested mappings; left as it is.
        changes: Nested mappings with the entries that are replaced.
        nulls_remove: False keeps nulls, which in a variant are yet to remove something.
    """
    merged = dict(tree)
    for key, value in changes.items():
        old = merged.get(key)
        if value is None and nulls_remove:
            merged.pop(key, None)
        elif (
            isinstance(value, Mapping)
            and isinstance(old, Mapping)
            and is_same(old, value)
        ):
            merged[key] = merge(old, value, nulls_remove=nulls_remove)
        else:
            merged[key] = value
    return merged


def replace(
    tree: Mapping[str, object], keys: Keys, value: object, *, nulls_remove: bool = True
) -> dict[str, object]:
    """Returns a tree with one entry merged as in `merge`; the rest stays as it is.

    In particular a `kind` that is replaced alone leaves the entries next to it. An
    entry of a list is known by its position, from 0.

    Raises:
        ScenarioError: the entry is deeper than any can be.
    """
    if len(keys) > DEEPEST:
        key = shortened(".".join(map(str, keys)), LONGEST)
        raise ScenarioError(
            f"{key} must have at most {DEEPEST} parts, got {len(keys):,}; shorten it"
        )
    head, *rest = str(keys[0]), *keys[1:]
    if not rest:
        return merge(tree, {head: value}, nulls_remove=nulls_remove)
    known, is_list = entries(tree.get(head)), isinstance(tree.get(head), list | tuple)
    if is_list and str(rest[0]) not in known:
        known, is_list = {}, False
    inner = replace(known, tuple(rest), value, nulls_remove=nulls_remove)
    return {**tree, head: list(inner.values()) if is_list else inner}


def entries(value: object) -> Mapping[str, Any]:
    """Returns the entries of a mapping, or of a list by position; none of others."""
    if isinstance(value, list | tuple):
        return {str(position): item for position, item in enumerate(value)}
    return value if isinstance(value, Mapping) else {}


def short_names(keys: tuple[str, ...]) -> dict[str, str]:
    """Returns each dotted key's shortest ending that no other has, in pages' words."""
    names, told = {}, {key: documented_key(key) for key in keys}
    for key, word in told.items():
        parts = word.split(".")
        endings = [".".join(parts[-n:]) for n in range(1, len(parts) + 1)]
        others = [f".{told[other]}" for other in keys if other != key]
        names[key] = next(
            (e for e in endings if not any(o.endswith(f".{e}") for o in others)), word
        )
    return names


def is_same(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Returns whether a mapping names no other kind or law than the one it meets."""
    return all(new[tag] == old.get(tag) for tag in TAGS if tag in new)


def _check_study_wide(scenario: Varied) -> None:
    for variant, changes in scenario.variants.items():
        for key in changes:
            if key in OF_STUDY and key != "sweep":
                raise VariantError(
                    f"variants.{variant}.{key} must not be set, because it is the same "
                    f"for all runs of a study; set {key} at the top",
                    ("variants", variant, key),
                )


def _check_number(scenario: Varied) -> None:
    variants = scenario.variants or {BASE: {}}
    points = [p for each in variants.items() for p in _points(scenario, *each)]
    if (number := len(points)) > MOST_RUNS:
        raise VariantError(
            f"sweep must leave at most {MOST_RUNS:,} runs, got {number:,} points of "
            f"all variants; take fewer values or variants",
            ("sweep",),
        )
    if sum(_replicates(point, scenario) for point in points) > MOST_RUNS:
        raise VariantError(
            f"replicates must leave at most {MOST_RUNS:,} runs, got "
            f"{scenario.replicates:,} of each of {number:,} variants and points; lower "
            f"it, or make several studies",
            ("replicates",),
        )


def _points(
    scenario: Varied, variant: str, changes: Mapping[str, object]
) -> list[grid.Point]:
    own = "sweep" in changes
    place: Keys = ("variants", variant) if own else ()
    sweep = (changes["sweep"] or {}) if own else scenario.sweep
    if not isinstance(sweep, Mapping):
        raise VariantError(
            f"variants.{variant}.sweep must give keys lists of values, got "
            f"{shown(sweep)}; write for example {{seed: [1, 2]}}, or {{}} for none",
            (*place, "sweep"),
        )
    known = type(scenario).model_fields
    for key in sweep:
        if key not in (grid.ZIPPED, grid.RANDOM) and key.split(".")[0] not in known:
            raise VariantError(
                f"{'.'.join((*place, 'sweep', key))} is not a known key; "
                f"{advice(key, known, at_top=True)}",
                (*place, "sweep", key),
            )
    try:
        found = grid.points(sweep, scenario.seed)
    except LocatedError as error:
        name = ".".join(place)
        raise VariantError(
            f"{name}.{error}" if name else str(error), (*place, *error.keys)
        ) from None
    for key, value in found[0].items():
        zipped = key == grid.REPLICATES and value.place[0] == grid.ZIPPED
        if key.split(".")[0] in OF_STUDY and not zipped:
            raise VariantError(
                f"sweep.{key} must not be swept, because it is the same for all runs "
                f"of a study; set it at the top",
                (*place, "sweep", *value.place[: value.place.index(key) + 1]),
            )
    return found


def _refuse_overwriting(scenario: Varied, variant: str, point: grid.Point) -> None:
    """Refuses a swept value that would take the place of a variant's own."""
    for key, at, found in _overwritten(scenario.variants[variant], point):
        name = ".".join(map(str, at))
        raise VariantError(
            f"variants.{variant}.{name} must be left out where {key} is swept, "
            f"which would replace it, got {shown(found)}; remove it, or give the "
            f"variant a sweep of its own ({{}} for none)",
            ("variants", variant, *at),
        )


def swept_over(scenario: Varied, own: Mapping[str, object]) -> Iterator[str]:
    """Yields keys of the sweep at the top whose values would replace some entries."""
    for point in _points(scenario, BASE, {}):
        yield from (key for key, *_ in _overwritten(own, point))


def _overwritten(
    own: Mapping[str, object], point: grid.Point
) -> Iterator[tuple[str, Keys, object]]:
    """Yields each swept key that replaces an entry, the entry's place and its value."""
    for key, each in point.items():
        keys = tuple(key.split("."))
        swept = replace({}, keys, each.value, nulls_remove=False)
        yield from ((key, at, found) for at, found in _replaced(own, swept))


def _replaced(
    tree: Mapping[str, object], changes: Mapping[str, object]
) -> Iterator[tuple[Keys, object]]:
    """Yields the places in a tree whose values `merge` would replace, and these."""
    for key in sorted(tree.keys() & changes.keys()):
        old, new = tree[key], changes[key]
        if isinstance(old, Mapping) and isinstance(new, Mapping) and is_same(old, new):
            yield from (((key, *at), value) for at, value in _replaced(old, new))
        else:
            yield (key,), old


def _swept(runs: list[Run]) -> claimed.Swept:
    swept: claimed.Swept = {}
    for run in runs:
        for of_name in (swept.setdefault(n, {}) for n in (run.variant, run.label)):
            for key, value in run.parameters.items():
                if value not in (found := of_name.setdefault(key, [])):
                    found.append(value)
    return swept


def _evaluated(runs: list[Run]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        names = dict.fromkeys(run.scenario.evaluate.metrics)
        for of_name in (run.variant, run.label):
            found.setdefault(of_name, {}).update(names)
    return found


def _resolved(
    tree: Mapping[str, object],
    variant: str,
    changes: Mapping[str, object],
    point: grid.Point,
    scenario: S,
) -> S:
    """Returns the scenario of a variant at a sweep point."""
    kind, swept = type(scenario), tree
    for key, each in point.items():
        swept = replace(swept, tuple(key.split(".")), each.value)
    try:
        return kind.model_validate(swept)
    except ValidationError as error:
        wrong, message = first_error(error, swept, kind)
    try:
        kind.model_validate(tree)
    except ValidationError as error:
        keys, message = first_error(error, tree, kind)
        where = ("variants", variant, *keys) if changes else keys
        base = scenario.model_dump(mode="json", exclude_unset=True)
        message += of_another(keys, tree, base)
        raise VariantError(f"variants.{variant}: {message}", where) from None
    to_blame = [key for key in point if _meet(tuple(key.split(".")), wrong)]
    key = next(iter(to_blame or point))
    values = ", ".join(f"{k} = {shown(point[k].value)}" for k in to_blame or point)
    place = ("variants", variant) if "sweep" in changes else ()
    raise VariantError(
        f"sweep of {values} (variant {variant}): {message}",
        (*place, "sweep", *point[key].place),
    )


def _meet(one: Keys, other: Keys) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False)) and bool(other)
