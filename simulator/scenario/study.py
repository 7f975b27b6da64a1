"""From one scenario to its runs: variants, sweep points and replicates."""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from simulator.scenario.errors import ScenarioError
from simulator.scenario.scenario import Scenario


class Run(NamedTuple):
    """One run of a study.

    Attributes:
        number: from 0, in the order of variants, sweep points, replicates.
        variant: its name, or `base`.
        parameters: swept keys and their values.
        replicate: from 0.
        seed: of everything random; the same for a replicate in all variants and sweep
            points, so that differences are paired.
        scenario: resolved, without variants, sweep and replicates.
    """

    number: int
    variant: str
    parameters: dict[str, Any]
    replicate: int
    seed: int
    scenario: Scenario

    @property
    def label(self) -> str:
        """Variant and swept values, for tables and figures."""
        values = (f"{key.split('.')[-1]}={v}" for key, v in self.parameters.items())
        return ", ".join([self.variant, *values])


def expand(scenario: Scenario) -> list[Run]:
    """Returns every run of a study.

    Raises:
        ScenarioError: a variant or a swept value does not give a valid scenario.
    """
    base = scenario.model_dump(mode="json")
    base |= {"variants": {}, "sweep": {}, "replicates": 1}
    variants = scenario.variants or {"base": {}}
    keys = list(scenario.sweep)
    runs: list[Run] = []
    for variant, changes in variants.items():
        changed = merge(base, changes)
        for values in itertools.product(*scenario.sweep.values()):
            parameters = dict(zip(keys, values, strict=True))
            tree = changed
            for key, value in parameters.items():
                tree = replace(tree, key, value)
            resolved = _validated(tree, variant, changes, parameters)
            for replicate in range(scenario.replicates):
                seed = replicate_seed(scenario.seed, replicate)
                runs.append(
                    Run(len(runs), variant, parameters, replicate, seed, resolved)
                )
    return runs


def replicate_seed(seed: int, replicate: int) -> int:
    """Returns the seed of one replicate."""
    sequence = np.random.SeedSequence(seed, spawn_key=(replicate,))
    return int(sequence.generate_state(1, np.uint32)[0])


def merge(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a tree with some entries replaced, and those of value null removed.

    A mapping is merged into the one that it meets, unless it names another `kind` or
    `law`: then it replaces it.
    """
    merged = dict(tree)
    for key, value in changes.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            other = any(
                tag in value and value[tag] != old.get(tag) for tag in ("kind", "law")
            )
            merged[key] = dict(value) if other else merge(old, value)
        else:
            merged[key] = value
    return merged


def replace(tree: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Returns a tree with the entry at a dotted key replaced."""
    head, _, rest = key.partition(".")
    changed = dict(tree)
    if rest:
        old = changed.get(head)
        changed[head] = replace(old if isinstance(old, Mapping) else {}, rest, value)
    elif isinstance(value, Mapping) and isinstance(changed.get(head), Mapping):
        changed[head] = merge(changed[head], value)
    else:
        changed[head] = value
    return changed


def schema() -> dict[str, Any]:
    """Returns the JSON schema of a scenario, for editors."""
    return Scenario.model_json_schema()


class VariantError(ScenarioError):
    """A variant or swept value that does not give a valid scenario.

    Attributes:
        keys: where in the scenario it is written.
    """

    def __init__(self, message: str, keys: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.keys = keys


def _validated(
    tree: dict[str, Any],
    variant: str,
    changes: Mapping[str, Any],
    parameters: dict[str, Any],
) -> Scenario:
    from simulator.scenario.messages import first_error

    try:
        return Scenario.model_validate(tree)
    except ValidationError as error:
        keys, message = first_error(error, tree)
    key = ".".join(map(str, keys))
    swept = [k for k in parameters if key.startswith(k) or k.startswith(key)]
    if swept:
        raise VariantError(
            f"sweep.{swept[0]} = {parameters[swept[0]]!r}: {message}",
            ("sweep", swept[0]),
        )
    where: tuple[str | int, ...] = ("variants", variant) if changes else ()
    raise VariantError(f"variants.{variant}: {message}", (*where, *keys))
