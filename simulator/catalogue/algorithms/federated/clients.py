"""Stages of clients: their work, clipping, and noise on their messages.

No JAX is imported until a run needs it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, model_validator

from ....files.timeline import NO_WORKER
from ....parts.base import Config, LocatedError
from ....parts.lazy import Late
from ....privacy.releases import Calibrated, Guarantee
from ....problem.constants import Constants
from .abilities import AddsNoise
from .chain import Chained, refuse_two_rates
from .stage import Count, LocalOptions, SendPart, WorkPart, in_program
from .stages import ClientJob

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ....engine import client_work
    from ....engine.client_work import Work
    from ....engine.optimizers import rule as optimizing
    from ....engine.optimizers.arrays import UpdateRule
    from ....engine.setup import RunSetup
    from ....problem.horizontal import HorizontalProblem
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    client_work = Late("....engine.client_work", __package__)
    optimizing = Late("....engine.optimizers.rule", __package__)
    Array = HorizontalProblem = RunSetup = Work = UpdateRule = Any

Positive = Annotated[float, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1)]


class LocalWork(LocalOptions, WorkPart):
    """Local steps; contributes the sum of their gradients, or directions."""

    kind: Literal["local_work"] = "local_work"
    proximal: Annotated[float, Field(ge=0)] | None = None
    """rho of FedAsync's clients, mu of FedProx: clients step on their loss plus half of
    it times the squared distance from the model read; by default on their loss."""
    _rule: UpdateRule | None
    _keeps: bool

    @property
    def beyond_gradients(self) -> str:
        if self.local_optimizer is not None:
            return "local_optimizer"
        several = (self.local_steps or 1) > 1 or self.local_epochs is not None
        return "proximal" if self.proximal and several else ""

    def structure(self) -> dict[str, object]:
        """Returns its options without the learning rates."""
        found, rule = self.model_dump(mode="json"), self.local_optimizer
        found["local_steps"] = self.local_steps or 1
        return found if rule is None else {**found, "local_optimizer": rule.program()}

    def fits(self, method: Chained) -> None:
        if self.speeds is not None and method.samples == "common":
            raise method.refusal(
                self,
                "speeds",
                f"must be left out with samples, got {self.speeds!r}; remove one of "
                f"them",
            )
        clash = "samples" if method.samples == "common" else ""
        clash = "sampling" if method.sampling == "replacement" else clash
        if self.local_epochs is not None and clash:
            raise LocatedError(
                f"{clash} must be left out with local_epochs, which go through each "
                f"client's own samples, got {getattr(method, clash)!r}; remove it",
                (clash,),
            )
        if self.local_optimizer is not None:
            refuse_two_rates(method, self, "local_optimizer", method.local_rule)

    @property
    def is_plain(self) -> bool:
        """Whether steps of a run are plain SGD's."""
        return self._rule is None

    def make(self, setup: RunSetup, constants: Constants, **facts: object) -> Self:
        chosen = self.local_optimizer
        rule, keeps = None, False
        if chosen is not None:
            method = setup.scenario.algorithm
            assert isinstance(method, Chained)
            key = method.key_of(self, "local_optimizer")
            rule, keeps = optimizing.rule_of(chosen, key), chosen.state == "kept"
        return in_program(self, ("proximal",), _rule=rule, _keeps=keeps, **facts)

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        return optimizing.start(self._rule, problem, weights) if self._keeps else None

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, object]:
        of_job = job.samples.shape[0] if job.taken is None else job.taken
        rule, proximal = self._rule, cast("Array | None", self.proximal)
        work = client_work.local_steps(
            job.problem,
            job.read,
            job.samples,
            job.step_size,
            proximal,
            job.training_key,
            rule,
            state,
            made=job.number * of_job,
            taken=job.taken,
            drift=job.drift,
        )
        after = work.optimizer if self._keeps else None
        if rule is not None:
            # An optimiser may make anything of the zeros that padding has read.
            message = jnp.where(job.worker != NO_WORKER, work.message, 0)
            work = work._replace(message=message, optimizer=None)
        return work, after


class ClippedWork(WorkPart):
    """One step, for which the gradient of each sample is clipped."""

    kind: Literal["clipped_work"] = "clipped_work"
    clips_samples: ClassVar[bool] = True
    clip_bound: Positive
    """C, largest l2 norm of a sample's gradient."""

    def __call__(self, job: ClientJob, state: None) -> tuple[Work, None]:
        bound = cast("Array", self.clip_bound)
        made = client_work.clipped_per_sample(
            job.problem, job.read, job.samples[0], bound, key=job.training_key
        )
        return made, state


class Clip(SendPart):
    """Clips whole contributions.

    Source: McMahan et al., Learning Differentially Private Recurrent Language Models
    (2018), Algorithm 1.
    """

    kind: Literal["clip"] = "clip"
    clip_bound: Positive
    """C, largest l2 norm."""

    def __call__(self, job: ClientJob, work: Work, state: None) -> tuple[Work, None]:
        bound = cast("Array", self.clip_bound)
        return client_work.clipped(work, bound), state


class NoiseBudget(Config):
    """A privacy budget from which the noise is calculated before the run.

    The run ends just before a client would exceed it, as by `privacy.budget`.
    """

    epsilon: Positive
    """Epsilon that a client may spend."""
    delta: Part = 1e-5
    """Delta that it holds with."""
    releases: Count
    """Messages of the client that draws the largest share of its samples; a client that
    draws less may send more. Of the server's noise: commits with one message of a
    client; one with m of them counts as m^2."""
    accountant: Literal["rdp", "pld", "gdp", "basic", "advanced", "optimal"] = "rdp"
    """Accountant that composes the guarantees of the messages."""

    def known(self, name: str) -> Calibrated:
        """Returns it as what noise is calculated for.

        Args:
            name: Dotted key of the stage that has the noise.
        """
        return Calibrated(
            f"{name}.budget",
            epsilon=self.epsilon,
            delta=self.delta,
            accountant=self.accountant,
        )


class NoiseOptions(Config):
    """Options of noise on messages."""

    law: Literal["gaussian", "spherical_laplace"] = "gaussian"
    """Law of the noise."""
    multiplier: Annotated[float, Field(ge=0)] | None = None
    """Scale of the noise over the sensitivity."""
    budget: NoiseBudget | None = None
    """Budget from which the multiplier is calculated."""

    @model_validator(mode="after")
    def _one_way(self) -> "NoiseOptions":
        if (self.multiplier is None) == (self.budget is None):
            raise ValueError(
                "must have either multiplier or budget, not both or neither; remove "
                "one or add one"
            )
        return self

    def multiplier_at(self, sampling_ratio: float) -> float:
        """Returns the noise multiplier that is stated, or that the budget needs.

        Args:
            sampling_ratio: Share of its samples that a client draws, the largest of all
                clients, in (0, 1].

        Returns:
            Noise scale over sensitivity, >= 0.

        Raises:
            UserError: no noise is enough, or the accountant has no such release.
        """
        if self.budget is None:
            return self.multiplier or 0.0
        from ....privacy.guarantees import calibrated  # SciPy

        numbers = self.budget.epsilon, self.budget.delta, self.budget.releases
        accountant = self.budget.accountant
        return calibrated(*numbers, accountant, self.law, sampling_ratio, "uniform")

    @property
    def noise_law(self) -> str:
        """Law of the noise, of a stage that has these options."""
        return self.law

    def calibrated(self, name: str) -> Calibrated | None:
        """Returns the budget that it is calculated for, if it is.

        Args:
            name: Dotted key of the options.
        """
        return None if self.budget is None else self.budget.known(name)


class SentNoise(NoiseOptions, SendPart):
    """Adds noise, in proportion to the sensitivity when one sample is replaced.

    The stage before it is one that clips, by whose bound C the sensitivity is known:
    2 C / b of `clipped_work`, 2 C of `clip`.

    Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1.
    """

    kind: Literal["noise"] = "noise"
    statistics_would_be: ClassVar[str] = "sent without noise"
    draws: ClassVar[bool] = True
    _bound: Array
    _multiplier: Array
    _samples: int

    def structure(self) -> dict[str, object]:
        return {"kind": self.kind, "law": self.law}

    def clip_before(self, method: Chained) -> ClippedWork | Clip:
        """Returns the method's stage that bounds the message before the noise.

        Raises:
            LocatedError: The stage before the noise does not clip.
        """
        place = next(i for i, stage in enumerate(method.stages) if stage == self)
        before = method.stages[place - 1]
        if not isinstance(before, ClippedWork | Clip):
            kind = getattr(before, "kind", "")
            raise method.refusal(
                self,
                "",
                f"must be next after a stage that clips, for noise is in proportion "
                f"to its bound, got 'noise' after {kind!r}; put clip before it",
            )
        return before

    def fits(self, method: Chained) -> None:
        """Refuses noise of unknown sensitivity, or of which only a part would count."""
        self.clip_before(method)
        noisy = (stage for stage in method.stages if isinstance(stage, AddsNoise))
        if sum(stage.noise_law is not None for stage in noisy) > 1:
            raise method.refusal(
                self,
                "",
                "must be the only noise, because the privacy of two is unknown, got "
                "two stages; remove one",
            )
        if self.budget is not None and method.sampling != "distinct":
            raise method.refusal(
                self,
                "budget",
                f"must be with sampling 'distinct', for which noise is calculated, got "
                f"{method.sampling!r}; give a multiplier",
            )

    def guarantees(
        self, method: Chained, num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        """Returns the privacy guarantee of one message of each client."""
        from ....privacy.guarantees import of_clipped  # SciPy

        clip = "sample" if method.clips_samples else "contribution"
        ratio = batch / min(num_samples) if method.clips_samples else 1.0
        multiplier = self.multiplier_at(ratio)
        return of_clipped(self.law, clip, multiplier, method, num_samples, batch)

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        method = setup.scenario.algorithm
        assert isinstance(method, Chained)
        batch = setup.shape.batch
        by_sample = method.clips_samples
        ratio = batch / min(setup.shares.num_samples) if by_sample else 1.0
        return in_program(
            self,
            ("law",),
            _bound=jnp.asarray(self.clip_before(method).clip_bound, float),
            _multiplier=jnp.asarray(self.multiplier_at(ratio), float),
            _samples=batch if by_sample else 1,
        )

    def __call__(self, job: ClientJob, work: Work, state: None) -> tuple[Work, None]:
        """Returns the contribution with noise, drawn by client and job."""
        assert job.key is not None
        key = jax.random.fold_in(jax.random.fold_in(job.key, job.worker), job.number)
        scale = self._multiplier * 2 * self._bound / self._samples
        return client_work.noised(work, self.law, key, scale), state
