"""The work of a client between read and upload; kernels that divide it from rows."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from ..files.timeline import NO_SAMPLE
from ..privacy import mechanisms
from ..problem.horizontal import HorizontalProblem
from ..problem.models.base import STATISTICS_KEPT
from .kernel import Event, Info, Kernel, ProblemT, StateT
from .optimizers.arrays import UpdateRule, arrays_of_rows

NOISE = {
    "radial_exponential": mechanisms.radial_exponential,
    "spherical_laplace": mechanisms.spherical_laplace,
    "laplace": mechanisms.laplace,
    "gaussian": mechanisms.gaussian,
}


OF_TRAINING = 2**31 - 2
"""Number of the random keys of training; no client has it."""
OF_SERVER = 2**31 - 3
"""Number of the random keys of a server; no client has it."""
Augment = Callable[[Float[Array, "S P"]], Float[Array, "S P"]]
"""A change of the features of a batch."""


class Work(NamedTuple):
    """One contribution.

    Attributes:
        loss: Mean loss of its own samples, without the regulariser.
        gradient: sum over the local steps, before clipping and noise; with an
            optimiser of local steps, of their directions. None once it is sent.
        message: The part of it that is sent.
        info: diagnostics.
        statistics: Of a model that keeps running ones, those of the batch; of local
            steps the running ones after them.
        optimizer: State of the client's optimiser after its local steps, if it has one.
    """

    loss: Float[Array, "*W"]
    gradient: Float[Array, "..."] | None
    message: Float[Array, "..."]
    info: Info
    statistics: Float[Array, "..."] | None = None
    optimizer: PyTree = None


def keep(
    registers: Float[Array, "R ..."], weights: Float[Array, "..."], event: Event
) -> Float[Array, "R ..."]:
    """Writes the version before a row to the register of its readers.

    Or those before the rows of a wave, `[T, ...]`.
    """
    if weights.shape[-1] != registers.shape[-1]:  # all but the spare columns
        place = jnp.index_exp[event.keep_slot, ..., : weights.shape[-1]]
        return registers.at[place].set(weights, mode="drop")
    return registers.at[event.keep_slot].set(weights, mode="drop")


def read(registers: Float[Array, "R ..."], event: Event) -> Float[Array, "W ..."]:
    """Returns the model that each worker of a row has read, as wide as registers.

    Padding has read zeros.
    """
    return registers.at[event.read_slot].get(mode="fill", fill_value=0)


def samples_of(event: Event, steps: int) -> Int[Array, "W Q S"]:
    """Returns the samples of each worker and local step."""
    W = event.worker.shape[0]
    samples = jnp.broadcast_to(event.samples, (W, event.samples.shape[1]))
    return samples.reshape(W, steps, -1)


def steps_of(samples: Int[Array, "Q S"]) -> Int[Array, ""]:
    """Returns how many of a job's batches have samples: those before the others."""
    return (samples[:, 0] != NO_SAMPLE).sum(dtype=jnp.int32)


def training_key(
    problem: HorizontalProblem,
    key: Key[Array, ""] | None,
    worker: Int[Array, ""],
    job: Int[Array, ""],
) -> Key[Array, ""] | None:
    """Returns the random key of a job's training, such as dropout.

    None for a model that draws nothing. Each local step draws by its own number.
    """
    if key is None or not problem.takes_key:
        return None
    # Noise is drawn by the numbers of clients alone.
    own = jax.random.fold_in(jax.random.fold_in(key, OF_TRAINING), worker)
    return jax.random.fold_in(own, job)


def gathered(
    problem: HorizontalProblem, samples: Int[Array, " S"]
) -> tuple[Float[Array, "S P"], Num[Array, " S *L"], Bool[Array, " S"]]:
    """Returns the features and labels of some samples, and which are no padding.

    The features of padding are anything: its losses do not count, and filling them
    with zeros costs as much as half of the gather.
    """
    x = problem.x.at[samples].get(mode="clip")
    y = problem.y.at[samples].get(mode="fill", fill_value=0)
    return x, y, samples != NO_SAMPLE


def gradient_of(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    samples: Int[Array, " S"],
    key: Key[Array, ""] | None = None,
) -> tuple[Float[Array, ""], Float[Array, "..."]]:
    """Returns a batch's loss, and its gradient with the regulariser's.

    The weights may be as wide as registers; the gradient has no spare columns. `key` is
    from `training_key`.
    """
    x, y, valid = gathered(problem, samples)
    loss, gradient = jax.value_and_grad(problem.batch_loss)(weights, x, y, valid, key)
    own = problem.penalised(problem.narrowed(weights))
    return loss, problem.narrowed(gradient) + own


def at_once(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    samples: Int[Array, " S"],
    augment: Augment | None = None,
    key: Key[Array, ""] | None = None,
) -> Work:
    """Contributes the gradient of one batch, and the statistics of its layers.

    Args:
        problem: horizontally divided.
        weights: Weights that were read.
        samples: Sample ids of the batch.
        augment: Change of its features, if any.
        key: Random key of training, from `training_key`.
    """
    x, y, valid = gathered(problem, samples)
    x = x if augment is None else augment(x)
    graded = jax.value_and_grad(problem.training_loss, has_aux=True)
    (loss, statistics), gradient = graded(weights, x, y, valid, key)
    gradient = gradient + problem.penalised(weights)
    return Work(loss, gradient, gradient, {}, statistics)


def local_steps(
    problem: HorizontalProblem,
    start: Float[Array, "..."],
    samples: Int[Array, "Q S"],
    step_size: Float[Array, ""],
    proximal: Float[Array, ""] | None = None,
    key: Key[Array, ""] | None = None,
    rule: UpdateRule | None = None,
    state: PyTree = None,
    made: Int[Array, ""] | int = 0,
    taken: Int[Array, ""] | None = None,
    drift: Float[Array, "..."] | None = None,
) -> Work:
    """Makes local steps; contributes the sum of their gradients, or directions.

    Args:
        problem: horizontally divided.
        start: Weights that were read.
        samples: Sample ids of each step.
        step_size: Step size of the local steps.
        proximal: coefficient of half the squared distance from `start`, if any.
        key: Random key of training, from `training_key`.
        rule: Optimiser of the local steps; None for plain SGD.
        state: Its state before the job; None where it starts from zero.
        made: Local steps of the client's jobs before this one.
        taken: Steps that are made, from `steps_of`; by default all.
        drift: Term that is added to each gradient, shaped like it, if any.
    """
    steps, count = samples.shape[0], problem.model.num_statistics
    if steps == 1 and rule is None and not count:
        # At the start, where the proximal term has no gradient.
        own = None if key is None else jax.random.fold_in(key, 0)
        loss, total = gradient_of(problem, start, samples[0], own)
        total = total if drift is None else total + drift
        return Work(loss, total, total, {})
    start, arrays = problem.narrowed(start), arrays_of_rows(problem)
    if rule is not None and state is None:
        state = rule.init(start, arrays)

    def gradient(weights: Array, samples: Array, key: Array | None) -> tuple:
        if not count:
            return *gradient_of(problem, weights, samples, key), None
        work = at_once(problem, weights, samples, key=key)
        return work.loss, work.gradient, work.statistics

    def once(q: Int[Array, ""], carried: tuple) -> tuple:
        weights, total, loss, state = carried
        own = None if key is None else jax.random.fold_in(key, q)
        found, way, measured = gradient(weights, samples[q], own)
        if proximal is not None:
            way = way + proximal * (weights - start)
        if drift is not None:
            way = way + drift
        if rule is not None:
            way, state = rule.update(way, state, weights, made + q, arrays)
        if measured is None:
            return weights - step_size * way, total + way, loss + found, state
        # Running statistics follow those of the batch; the sum has zeros for them.
        way = way.at[-count:].set(0)
        kept = running(weights[-count:], measured)
        moved = (weights - step_size * way).at[-count:].set(kept)
        return moved, total + way, loss + found, state

    initial = (start, jnp.zeros_like(start), jnp.zeros((), start.dtype), state)
    # Of clients side by side, those who are done keep what they have.
    last = steps if taken is None else taken
    end, total, loss, state = jax.lax.fori_loop(0, last, once, initial)
    loss = loss / (steps if taken is None else jnp.maximum(taken, 1))
    return Work(loss, total, total, {}, end[-count:] if count else None, state)


def running(
    before: Float[Array, " Q"], measured: Float[Array, " Q"]
) -> Float[Array, " Q"]:
    """Returns running statistics after a batch, whose own a step takes a part of."""
    return STATISTICS_KEPT * before + (1 - STATISTICS_KEPT) * measured


def clipped_per_sample(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    samples: Int[Array, " S"],
    bound: Float[Array, ""],
    num_noised: int | None = None,
    augment: Augment | None = None,
    key: Key[Array, ""] | None = None,
) -> Work:
    """Contributes the mean of gradients that are clipped one by one.

    Args:
        problem: horizontally divided.
        weights: Weights that were read.
        samples: Sample ids of the batch.
        bound: largest l2 norm of a sample's gradient.
        num_noised: numbers at the beginning that the norm is taken of; by default all.
        augment: Change of the batch's features, if any.
        key: Random key of training, from `training_key`.
    """
    x, y, valid = gathered(problem, samples)
    x = x if augment is None else augment(x)
    weights = problem.narrowed(weights)
    penalty = problem.penalised(weights)

    def one(x: Array, y: Array, v: Array, key: Array | None) -> tuple[Array, Array]:
        present = v[None]
        graded = jax.value_and_grad(problem.batch_loss)
        loss, gradient = graded(weights, x[None], y[None], present, key)
        return loss, gradient + penalty

    keys = None if key is None else jax.random.split(key, len(x))
    of_each = jax.vmap(one, in_axes=(0, 0, 0, None if keys is None else 0))
    losses, gradients = of_each(x, y, valid, keys)
    rows = gradients.reshape(gradients.shape[0], -1)
    count = jnp.maximum(valid.sum(), 1)
    exact = jnp.sum(jnp.where(valid[:, None], rows, 0), axis=0) / count
    size = num_noised or rows.shape[1]
    mean, fraction = mechanisms.clip_samples(rows[:, :size], bound, valid)
    sent = jnp.concatenate([mean, exact[size:]]) if num_noised else mean
    return Work(
        loss=jnp.sum(losses * valid) / count,
        gradient=exact.reshape(weights.shape),
        message=sent.reshape(weights.shape),
        info={"clipped_fraction": fraction},
    )


def clipped(work: Work, bound: Float[Array, ""], num_noised: int | None = None) -> Work:
    """Clips a whole contribution, or only what noise will be added to."""
    flat = work.message.reshape(-1)
    size = num_noised or flat.size
    sent, is_clipped = mechanisms.clip(flat[:size], bound)
    sent = jnp.concatenate([sent, flat[size:]]) if num_noised else sent
    info = {"clipped_fraction": is_clipped.astype(flat.dtype)}
    return work._replace(
        message=sent.reshape(work.message.shape), info=work.info | info
    )


def noised(
    work: Work,
    law: str,
    key: Key[Array, ""],
    scale: Float[Array, ""],
    num_noised: int | None = None,
) -> Work:
    """Adds noise to a contribution, or to its beginning."""
    flat = work.message.reshape(-1)
    size = num_noised or flat.size
    sent, noise_norm = NOISE[law](key, flat[:size], scale)
    sent = jnp.concatenate([sent, flat[size:]]) if num_noised else sent
    return work._replace(
        message=sent.reshape(work.message.shape),
        info=work.info | {"noise_norm": noise_norm},
    )


GivenT = TypeVar("GivenT")
SentT = TypeVar("SentT")


class Divided(Kernel[ProblemT, StateT], Generic[ProblemT, StateT, GivenT, SentT]):
    """An update rule of two parts: the work of clients, and its use.

    Work depends only on the model read, on samples, and on a client's state, so that
    the work of independent rows may be done at once. Its input for workers, and their
    messages, are trees of arrays `[W, ...]`.
    """

    def kept(self, state: StateT) -> PyTree:
        """Returns the clients' state between jobs, a tree of arrays: by default none.

        Then a client's work needs nothing of its work before.
        """

    @abstractmethod
    def opened(self, problem: ProblemT, state: StateT, event: Event) -> StateT:
        """Returns the state with the version before a row in its register."""

    @abstractmethod
    def given(self, state: StateT, event: Event) -> GivenT:
        """Returns the input of a row's workers: a tree of arrays `[W, ...]`.

        The models that they have read, and their state from job to job.
        """

    @abstractmethod
    def work_inputs(
        self, problem: ProblemT, event: Event, given: GivenT
    ) -> tuple[Float[Array, "W ..."], Float[Array, ""]]:
        """Returns the arguments and steps of a custom function for gradients.

        Returns:
            The models that were read, and the step size of local steps.
        """

    @abstractmethod
    def computed(
        self,
        problem: ProblemT,
        key: Key[Array, ""] | None,
        event: Event,
        given: GivenT,
        made: Work | None = None,
    ) -> SentT:
        """Returns the messages of the workers of a row, as `contribute` does.

        Args:
            problem: The problem.
            key: Key of the run; None where nothing is drawn.
            event: The row.
            given: The input of their work.
            made: Their gradients, a `client_work.Work` of arrays `[W, ...]`, where a
                function of the user's has made them.
        """

    def contribute(
        self, problem: ProblemT, state: PyTree, event: Event, made: Work | None = None
    ) -> SentT:
        """Returns the messages of the workers of a row: a tree of arrays `[W, ...]`.

        Args:
            problem: The problem.
            state: State after `opened` of this row, or of one since which no register
                was written that this row reads.
            event: The row.
            made: As `computed` takes it.
        """
        return self.computed(problem, state.key, event, self.given(state, event), made)

    @abstractmethod
    def apply(
        self, problem: ProblemT, state: StateT, event: Event, sent: SentT
    ) -> tuple[StateT, Info]:
        """Returns the state after a row, and diagnostics, as `step` does.

        Args:
            problem: The problem.
            state: State after `opened` of this row.
            event: The row.
            sent: The messages of its workers, from `contribute`.
        """

    def step(
        self, problem: ProblemT, state: StateT, event: Event
    ) -> tuple[StateT, Info]:
        state = self.opened(problem, state, event)
        sent = self.contribute(problem, state, event)
        return self.apply(problem, state, event, sent)
