"""What a run's chain is made of: the stages of a method, with the facts of the run."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...learning.constants import Constants
from ...setup import RunSetup
from ..base import on_device
from ..optimizers.rule import rule_of
from ..step_rules import Schedule, Steps, resolve
from . import parts
from .aggregation import AtOnce, Buffer
from .chain import PLACES, Chained, StagePart
from .kernel import Chain
from .modules import AddNoise, LocalSteps, Optimising, Stepping, Weighing


def build(config: Chained, setup: RunSetup, constants: Constants) -> Chain:
    """Returns the kernel of a method that is a chain of stages."""
    stages: dict[str, list[Any]] = {place: [] for place in PLACES}
    for stage in config.stages:
        stages[stage.place].append(stage.make(setup, constants))
    (work,), (weighing,), (server,) = (
        stages[place] for place in ("work", "weight", "server")
    )
    log = setup.timeline.answer_log
    if stages["aggregation"]:
        server = server(*stages["aggregation"], tuple(stages["adjusted"]))
    return Chain(
        step_size=_schedule(config.server_rule, constants),
        local_step_size=_schedule(config.local_rule, constants),
        reads=tuple(stages["read"]),
        work=work,
        sent=tuple(stages["sent"]),
        attacks=tuple(stages["attack"]),
        received=tuple(stages["received"]),
        weighing=weighing,
        server=server,
        local_steps=setup.sampler.steps,
        num_registers=setup.timeline.num_registers,
        asks=() if log is None else log.asks,
    )


def local_steps(part: parts.LocalWork, setup: RunSetup, _: Constants) -> LocalSteps:
    """Returns local steps, as many as the run's minibatches are for."""
    chosen = part.local_optimizer
    return LocalSteps(
        proximal=None if part.proximal is None else _number(part.proximal),
        optimizer=rule_of(chosen, f"algorithm.{_name(part, setup)}local_optimizer"),
        steps=setup.sampler.steps,
        uneven=setup.sampler.own_steps is not None,
        keeps=chosen is not None and chosen.state == "kept",
    )


def noise(part: parts.SentNoise, setup: RunSetup, _: Constants) -> AddNoise:
    """Returns noise of the scale that the stage before, and a budget, give it."""
    method, batch = setup.scenario.algorithm, setup.shape.batch
    bound = _number(part.clip_before(method).clip_bound)
    by_sample = method.clips_samples
    ratio = batch / min(setup.shares.num_samples) if by_sample else 1.0
    multiplier = _number(part.multiplier_at(ratio))
    return AddNoise(bound, multiplier, part.law, batch if by_sample else 1)


def weighing(part: parts.Weigh, setup: RunSetup, constants: Constants) -> Weighing:
    """Returns the weights, of numbers of the run and its data."""
    weight, shares = part.weight, None
    if part.weighting == "samples":
        sizes = jnp.asarray(setup.shares.num_samples, float)
        shares = sizes / sizes.mean()
    numbers = weight.numbers(setup, constants)
    return Weighing(
        numbers={name: _number(value) for name, value in numbers.items()},
        shares=shares,
        rule=type(weight),
        counts=weight.counts,
    )


def gathering(part: parts.Mean, setup: RunSetup, _: Constants) -> AtOnce | Buffer:
    """Returns a buffer where the protocol gathers contributions."""
    scenario, divisor = setup.scenario, part.divisor
    if not scenario.protocol.gathers:
        return AtOnce()
    if divisor == "expected":
        world = scenario.clients, setup.shape.num_clients, setup.run.seed
        divisor = scenario.protocol.expected_batch(*world)
    return Buffer(None if divisor is None else _number(divisor))


def optimising(part: parts.Optimise, setup: RunSetup, _: Constants) -> Optimising:
    """Returns the server's optimiser."""
    rule = rule_of(part.optimizer, f"algorithm.{_name(part, setup)}optimizer")
    assert rule is not None
    return Optimising(rule)


def stepping(part: parts.ServerStep, setup: RunSetup, _: Constants) -> type[Stepping]:
    """Returns what takes an aggregation and adjustments."""
    return Stepping


def _name(part: StagePart, setup: RunSetup) -> str:
    keys = setup.scenario.algorithm.keys_of(part)
    return "".join(f"{key}." for key in keys)


def _schedule(rule: Any, constants: Constants) -> Schedule | Steps:
    of_client, _ = resolve(rule, constants)
    return on_device(of_client)


def _number(value: Any) -> Float[Array, "..."]:
    return jnp.asarray(value, float)
