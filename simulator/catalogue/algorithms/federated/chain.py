"""A method as a chain of stages: their order and its consequences. No JAX here.

    read -> client's work -> sent -> attack -> received -> weight -> aggregation -> step

A stage is one class with its options. Named methods make their stages of options of
their own; `kind: chain` lists the stages. The method's properties in the simulator
(batches, messages, noise, checks) follow from its stages, also those of plug-ins.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Literal,
)

import numpy as np
from jaxtyping import Int
from pydantic import model_validator

from ....engine.algorithm import (
    FLOAT_BYTES,
    Algorithm,
    Bytes,
    ProblemShape,
    StepSize,
    batch_size,
    minibatches,
)
from ....parts.base import LocatedError, Part, tag
from ....parts.catalogue import AnyPart
from ....parts.errors import ScenarioError
from ....parts.expressions import Quantity, per_client
from ....parts.lazy import Late
from ....privacy.releases import Calibrated, Guarantee
from ....problem.capabilities import HasStages
from ....problem.constants import Constants
from ....problem.models.parts import ModelCounts
from ....problem.sampler import Sampler, UnevenSampler
from ....world.protocol import Protocol
from .abilities import (
    AddsNoise,
    Biased,
    ByArrays,
    ChecksProtocol,
    ExchangesMore,
    ForProtocols,
    GivesRoles,
    HasBudget,
    RefusesStatistics,
    Resizes,
    SendsAlong,
)
from .stage import (  # noqa: F401 - plug-ins import all bases from here
    ONE,
    PLACES,
    AdjustPart,
    AggregatePart,
    AttackPart,
    LocalOptions,
    ReadPart,
    ReceivePart,
    SendPart,
    ServerPart,
    Some,
    StagePart,
    WorkPart,
    in_program,
)

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....scenario.scenario import Problem
    from ....world.protocol import Protocol
    from . import kernel
else:
    kernel = Late(".kernel", __package__)


class Chained(HasStages, Algorithm):
    """Common base of the methods that are chains of stages."""

    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = (
        *(
            "asynchronous",
            "t_synchronous",
            "synchronous",
            "cyclic",
            "prescribed",
            "centralised",
        ),
        *("buffered", "collect", "routed"),
    )

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        raise NotImplementedError

    @property
    def remembers_reads(self) -> bool:
        return any(isinstance(stage, ReadPart) for stage in self.stages)

    @property
    def local_rule(self) -> StepSize:
        """Step size of the clients' own steps."""
        return self.step_size

    @property
    def server_rule(self) -> StepSize:
        """Step size of the server."""
        last = self.stages[-1]
        rule = last.rule if isinstance(last, ServerPart) else None
        return self.local_rule if rule is None else rule

    @property
    def work(self) -> WorkPart:
        """The client's work."""
        return next(stage for stage in self.stages if isinstance(stage, WorkPart))

    def keys_of(self, stage: StagePart) -> tuple[str | int, ...]:
        """Returns the keys, within the algorithm, of a stage's options."""
        return ()

    def key_of(self, stage: StagePart, *options: str) -> str:
        """Returns the dotted key of a stage in a scenario, or of an option of it."""
        return ".".join(map(str, ("algorithm", *self.keys_of(stage), *options)))

    def refusal(self, stage: StagePart, key: str, text: str) -> LocatedError:
        """Returns the error that an option of a stage is refused by.

        Args:
            stage: StagePart.
            key: Its option, or nothing for the stage itself.
            text: The rule, the value, and the remedy.
        """
        keys = self.keys_of(stage) + ((key,) if key else ())
        return LocatedError(f"{'.'.join(map(str, keys))} {text}", keys)

    def with_own(self, stage: type[Some], **options: object) -> Some:
        """Returns a stage with the options that the method has of the same names."""
        names = {*type(self).model_fields} & {*stage.model_fields} - {"kind"} - {
            *options
        }
        options |= {name: getattr(self, name) for name in names}
        return stage.model_construct(None, **options)

    def opened(self) -> dict[str, object]:
        """Returns the same method as a scenario has it with its stages written out."""
        tree = WrittenChain.model_construct(
            step_size=self.local_rule,
            batch=self.batch,
            sampling=self.sampling,
            samples=self.samples,
            chain=(),
        )
        return {**_written(tree), "chain": [_written(stage) for stage in self.stages]}

    @property
    def _local(self) -> LocalOptions:
        """What a job goes through: one batch where its work does not say."""
        work = self.work
        return work if isinstance(work, LocalOptions) else LocalOptions()

    @property
    def steps_per_job(self) -> int:
        return self._local.local_epochs or self._local.local_steps or 1

    @property
    def by_arrays(self) -> bool:
        return any(isinstance(s, ByArrays) and s.by_arrays for s in self.stages)

    @property
    def clips_samples(self) -> bool:
        return self.work.clips_samples

    @property
    def beyond_gradients(self) -> tuple[str | int, ...]:
        reads = (stage for stage in self.stages if isinstance(stage, ReadPart))
        stage = next(reads, self.work)
        whole = tag(type(stage))
        option = whole if isinstance(stage, ReadPart) else stage.beyond_gradients
        keys = self.keys_of(stage)
        if option == whole:
            return keys or (option,)
        return (*keys, option) if option else ()

    @property
    def can_shorten_jobs(self) -> bool:
        own = self._local
        others = (own.local_epochs, own.speeds, own.local_optimizer)
        plain = all(option is None for option in others)
        return plain and not self.clips_samples and self.samples != "common"

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Protocol
    ) -> Sampler:
        """Returns the minibatches of a run, of as many steps as the work has."""
        own = self._local
        if own.speeds is None and own.local_epochs is None:
            shortens, steps = not self.clips_samples, self.steps_per_job
            return minibatches(
                self, seed, pools, protocol, steps=steps, shortens=shortens
            )
        size = batch_size(self.batch, min(pool.size for pool in pools))
        if own.speeds is not None:
            steps = self._steps_by(own.speeds, len(pools))
            return UnevenSampler(seed, pools, size, sampling=self.sampling, own=steps)
        return UnevenSampler(seed, pools, size, epochs=own.local_epochs)

    def _steps_by(self, speeds: Quantity, num_clients: int) -> Int[np.ndarray, " K"]:
        keys = ("algorithm", *self.keys_of(self.work), "speeds")
        name = self.key_of(self.work, "speeds")
        found = per_client(speeds, num_clients, name)
        if not min(found) > 0:
            raise LocatedError(
                f"{name} must be > 0, got {float(min(found)):g}; change it", keys
            )
        share = [Fraction(speed) / Fraction(max(found)) for speed in found]
        steps = self._local.local_steps or 1
        return np.array([max(1, floor(steps * each)) for each in share])

    @property
    def noise(self) -> AddsNoise | None:
        """The stage that adds noise, if any does."""
        noisy = (stage for stage in self.stages if isinstance(stage, AddsNoise))
        return next((stage for stage in noisy if stage.noise_law), None)

    @property
    def noise_law(self) -> str | None:
        return None if self.noise is None else self.noise.noise_law

    @property
    def noise_by_commit(self) -> bool:
        return isinstance(self.noise, AggregatePart)

    @property
    def calibrated(self) -> Calibrated | None:
        noise = self.noise
        if not (isinstance(noise, HasBudget) and isinstance(noise, StagePart)):
            return None
        return noise.calibrated(self.key_of(noise))

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        noise = self.noise
        return () if noise is None else noise.guarantees(self, num_samples, batch)

    def biases(self, protocol: "Protocol", num_clients: int) -> Iterator[str]:
        if getattr(protocol, "harmonic_mean", None) is not None:
            kind = tag(type(self))
            yield (
                f"{kind} with protocol.harmonic_mean steps by the mean over "
                "contributions, so that fast clients count more: malenia takes that "
                "over clients"
            )
        for stage in self.stages:
            if isinstance(stage, Biased):
                yield from stage.biases(protocol, num_clients)

    def check(self, problem: "Problem", protocol: "Protocol") -> None:
        super().check(problem, protocol)
        for stage in self.stages:
            try:
                if isinstance(stage, ForProtocols):
                    self._refuse_others(stage, stage.protocols, protocol)
                if isinstance(stage, ChecksProtocol):
                    stage.check(self, protocol)
            except LocatedError as error:
                raise LocatedError(
                    f"algorithm.{error}", ("algorithm", *error.keys)
                ) from None

    def _refuse_others(
        self, stage: StagePart, protocols: tuple[str, ...], protocol: Protocol
    ) -> None:
        if protocols and not protocol.names & {*protocols}:
            raise self.refusal(
                stage,
                "kind",
                f"must be another stage than {tag(type(stage))!r}, which runs on "
                f"{' or '.join(protocols)}, got the protocol "
                f"{tag(type(protocol))!r}; change one of them",
            )

    def roles(self, num_clients: int, seed: int) -> tuple[str, ...]:
        """Returns the roles that the stages give each client, each word once."""
        giving = (stage for stage in self.stages if isinstance(stage, GivesRoles))
        of_stages = (stage.roles(self, num_clients, seed) for stage in giving)
        found = [roles for roles in of_stages if roles]
        return tuple(
            ", ".join(dict.fromkeys(filter(None, own)))
            for own in zip(*found, strict=True)
        )

    def check_model(self, counts: ModelCounts) -> None:
        for stage in self.stages:
            if counts.num_statistics and isinstance(stage, RefusesStatistics):
                raise ScenarioError(
                    f"{self.key_of(stage)} must be left out for a model that keeps "
                    f"statistics of batches, got {counts.num_statistics} numbers, "
                    f"which would be {stage.statistics_would_be}; normalise layers or "
                    f"groups"
                )

    def structure(self) -> dict[str, object]:
        own = {key: getattr(self, key) for key in ("batch", "sampling", "samples")}
        return {**own, "chain": [stage.structure() for stage in self.stages]}

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        """Returns the bytes of one contribution: the model down, as much up.

        Stages may make either smaller, or send something along with the model.
        """
        model = sent = FLOAT_BYTES * shape.num_weights
        for stage in (stage for stage in self.stages if isinstance(stage, Resizes)):
            if isinstance(stage, ReadPart):
                model = stage.sent_bytes(model, shape)
            else:
                sent = stage.sent_bytes(sent, shape)
        model += sum(FLOAT_BYTES * shape.num_weights for _ in self._sending)
        model += sum(stage.answer_bytes(shape) for stage in self._exchanging)
        return {"up": sent, "down": model}

    def overhead_s(self, shape: ProblemShape) -> float:
        return sum((stage.overhead_s(shape) for stage in self._exchanging), 0.0)

    @property
    def _exchanging(self) -> list[ExchangesMore]:
        return [stage for stage in self.stages if isinstance(stage, ExchangesMore)]

    @property
    def _sending(self) -> list[StagePart]:
        return [stage for stage in self.stages if isinstance(stage, SendsAlong)]

    def make(self, setup: "RunSetup", constants: Constants) -> "kernel.Chain":
        return kernel.build(self, setup, constants)

    @model_validator(mode="after")
    def _stages_fit(self) -> "Chained":
        refuse_disorder(self.stages)
        for stage in self.stages:
            stage.fits(self)
        for stage in self._sending[1:]:
            raise self.refusal(
                stage,
                "",
                f"must be the only stage that sends along with the model, got "
                f"{tag(type(self._sending[0]))!r} as well; remove one",
            )
        return self


class WrittenChain(Chained):
    """A method without its own name: the stages of its chain, one after the other.

    Their order: the model's download, the client's work, sending, attacks, receiving,
    the weight, the aggregation, adjustments of the step, and the server's step.
    `stalesim list fed_buff` prints the chain of a named method, to be copied and
    changed.
    """

    kind: Literal["chained"] = "chained"
    step_size: StepSize
    """Step size of the clients' own steps: a number, or a rule by which it changes. It
    is the server's as well, unless the stage `step` has one."""
    chain: tuple[Annotated[StagePart, AnyPart("stages")], ...]
    """The stages."""

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        return self.chain

    def keys_of(self, stage: StagePart) -> tuple[str | int, ...]:
        return ("chain", next(i for i, one in enumerate(self.chain) if one is stage))


def refuse_disorder(stages: Sequence[StagePart]) -> None:
    """Refuses stages that make no chain: in another order, missing, or too many.

    Raises:
        LocatedError: Which, and what to do.
    """
    order, kinds = list(PLACES), [tag(type(stage)) for stage in stages]
    for i, (first, second) in enumerate(pairwise(stages)):
        if order.index(second.place) < order.index(first.place):
            raise LocatedError(
                f"chain.{i + 1} must be before {kinds[i]!r}, {PLACES[first.place]}, "
                f"got {kinds[i + 1]!r}, {PLACES[second.place]}, after it; move it up",
                ("chain", i + 1),
            )
    last = stages[-1] if stages else None
    steps = not isinstance(last, ServerPart) or last.aggregates
    for place, example in ONE.items():
        there = [i for i, stage in enumerate(stages) if stage.place == place]
        if len(there) > 1:
            raise LocatedError(
                f"chain.{there[1]} must be left out after {kinds[there[0]]!r}, for "
                f"{PLACES[place]} is one stage, got {kinds[there[1]]!r}; remove one",
                ("chain", there[1]),
            )
        if not there and (steps or place != "aggregation"):
            raise LocatedError(
                f"chain must have a stage for {PLACES[place]}, got none; add one, such "
                f"as {{kind: {example}}}",
            )
    for i, stage in enumerate(() if steps else stages):
        if stage.place in ("aggregation", "adjusted"):
            raise LocatedError(
                f"chain.{i} must be left out before {kinds[-1]!r}, which takes "
                f"contributions as they are, got {kinds[i]!r}; remove it, or end with "
                f"step",
                ("chain", i),
            )


def refuse_two_rates(
    method: Chained, stage: StagePart, key: str, step_size: StepSize
) -> None:
    """Refuses a step size besides the learning rate of one of optax's optimisers."""
    if step_size != 1:
        raise method.refusal(
            stage,
            key,
            "must have the step size 1, because its learning rate replaces the step "
            f"size, got {step_size!r}; write step_size: 1",
        )


def _written(part: Part) -> dict[str, object]:
    fields, dumped = type(part).model_fields, part.model_dump(mode="json")
    named = {"kind": dumped.pop("kind")} if isinstance(part, StagePart) else {}
    return named | {
        key: value
        for key, value in dumped.items()
        if key in fields and value is not None and not _usual(part, key)
    }


def _usual(part: Part, key: str) -> bool:
    field = type(part).model_fields[key]
    return not field.is_required() and getattr(part, key) == field.default
