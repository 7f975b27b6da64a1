"""The named methods, each a chain of stages by a scenario's options."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...learning.constants import Constants
from ...setup import RunSetup
from ..base import on_device
from ..optimizers.rule import rule_of
from ..step_rules import Schedule, Steps, resolve
from .adjusting import LimitByStaleness, Optimise, ScaleByWeight
from .aggregation import AtOnce, Buffer
from .averaging import FedAsync, FedAvg, FedBuff
from .client import ClippedSamples, LocalSteps
from .kernel import Chain
from .part import Federated, Sgd
from .receiving import AsMoves, Compensate
from .sending import AddNoise, Clip
from .server import Mixing, Stepping
from .stages import AdjustStage, AggregateStage, SendStage, WorkStage
from .weighing import Weighing


def sgd(config: Sgd, setup: RunSetup, constants: Constants) -> Chain:
    """Steps by the mean contribution, at once or where the protocol gathers them."""
    step_size, received = _schedule(config.step_size, constants), ()
    local = step_size
    if config.local_step_size is not None:
        local = _schedule(config.local_step_size, constants)
    if (given := config.compensation) is not None:
        decay = _number(given.decay) if given.adaptive else None
        received = (Compensate(_number(given.strength), decay),)
    return Chain(
        step_size=step_size,
        local_step_size=local,
        received=received,
        weighing=_weighing(config, setup, constants),
        server=Stepping(
            _gathering(setup, _expected(config, setup)), _optimised(config)
        ),
        **_client(config, setup),
    )


def fed_avg(config: FedAvg, setup: RunSetup, constants: Constants) -> Chain:
    """Steps by the mean of what a round's clients moved."""
    return Chain(
        step_size=_schedule(config.server_step_size, constants),
        local_step_size=_schedule(config.step_size, constants),
        received=(AsMoves(),),
        weighing=_weighing(config, setup, constants),
        server=Stepping(_gathering(setup), _optimised(config)),
        **_client(config, setup, proximal=config.proximal or None),
    )


def fed_async(config: FedAsync, setup: RunSetup, constants: Constants) -> Chain:
    """Mixes each client's model into the server's."""
    step_size = _schedule(config.step_size, constants)
    return Chain(
        step_size=step_size,
        local_step_size=step_size,
        received=(),
        weighing=_weighing(config, setup, constants),
        server=Mixing(_number(config.mixing)),
        **_client(config, setup, proximal=config.proximal),
    )


def fed_buff(config: FedBuff, setup: RunSetup, constants: Constants) -> Chain:
    """Steps by the mean of what a buffer's clients moved; FADAS with a threshold."""
    limit = config.staleness_threshold
    limited = () if limit is None else (LimitByStaleness(_number(limit)),)
    return Chain(
        step_size=_schedule(config.server_step_size, constants),
        local_step_size=_schedule(config.step_size, constants),
        received=(AsMoves(),),
        weighing=_weighing(config, setup, constants),
        server=Stepping(_gathering(setup), (*limited, *_optimised(config))),
        **_client(config, setup),
    )


def _client(
    config: Federated, setup: RunSetup, *, proximal: float | None = None
) -> dict[str, Any]:
    """Returns the fields of what clients do, which all methods have."""
    chosen, mechanism = config.local_optimizer, config.mechanism
    work: WorkStage = LocalSteps(
        proximal=None if proximal is None else _number(proximal),
        optimizer=rule_of(chosen, "algorithm.local_optimizer"),
        steps=setup.sampler.steps,
        uneven=setup.sampler.own_steps is not None,
        keeps=chosen is not None and chosen.state == "kept",
    )
    sent: tuple[SendStage, ...] = ()
    if mechanism is not None:
        by_sample, batch = mechanism.clip == "sample", setup.shape.batch
        bound = _number(mechanism.clip_bound)
        ratio = batch / min(setup.shares.num_samples) if by_sample else 1.0
        multiplier = _number(mechanism.multiplier_at(ratio))
        noise = AddNoise(bound, multiplier, mechanism.law, batch if by_sample else 1)
        sent = (noise,) if by_sample else (Clip(bound), noise)
        work = ClippedSamples(bound) if by_sample else work
    return {
        "work": work,
        "sent": sent,
        "local_steps": setup.sampler.steps,
        "num_registers": setup.timeline.num_registers,
    }


def _weighing(config: Federated, setup: RunSetup, constants: Constants) -> Weighing:
    weight, shares = config.staleness_weight, None
    if getattr(config, "weighting", "equal") == "samples":
        sizes = jnp.asarray(setup.shares.num_samples, float)
        shares = sizes / sizes.mean()
    numbers = weight.numbers(setup, constants)
    return Weighing(
        numbers={name: _number(value) for name, value in numbers.items()},
        shares=shares,
        rule=type(weight),
        counts=weight.counts,
    )


def _gathering(setup: RunSetup, divisor: float | None = None) -> AggregateStage:
    """Returns a buffer where the protocol gathers contributions."""
    if not setup.scenario.protocol.gathers:
        return AtOnce()
    return Buffer(None if divisor is None else _number(divisor))


def _optimised(config: Sgd | FedAvg | FedBuff) -> tuple[AdjustStage, ...]:
    rule = rule_of(config.optimizer)
    if rule is None:
        return ()
    by_step = not (rule.is_linear or config.staleness_weight.constant)
    return (*((ScaleByWeight(),) if by_step else ()), Optimise(rule))


def _expected(config: Sgd, setup: RunSetup) -> float | None:
    if config.divisor != "expected":
        return config.divisor
    scenario, num_clients = setup.scenario, setup.shape.num_clients
    protocol, seed = scenario.protocol, setup.run.seed
    return protocol.expected_batch(scenario.clients, num_clients, seed)


def _schedule(rule: Any, constants: Constants) -> Schedule | Steps:
    of_client, _ = resolve(rule, constants)
    return on_device(of_client)


def _number(value: Any) -> Float[Array, "..."]:
    return jnp.asarray(value, float)
