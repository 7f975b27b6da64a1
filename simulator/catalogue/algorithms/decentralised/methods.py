"""The decentralised methods: each one's gradient, and its way of mixing."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.client_work import Work
from ....engine.kernel import Event, on_device
from ....engine.optimizers.rule import rule_of
from ....engine.setup import RunSetup
from ....engine.step_rules import resolve
from ....parts.errors import ScenarioError
from ....privacy import gossip_noise
from ....problem.constants import Constants
from ....problem.data.images import image_shape
from ....problem.horizontal import HorizontalProblem
from .kernel import GossipKernel, GossipState
from .merging import DISTANCE, Averaging, Model, Spread
from .part import Adp2sgd, Augmentation, Decentralised, Meeting

MOST_KEPT = 500
"""Workers that may keep each other's models: 163 million weights of softmax on digits,
and 0.7 GB."""


class BatchGradient(eqx.Module):
    """The mean gradient of a batch.

    Attributes:
        num_workers: K.
        augmentation: Changes of a batch's images, and their height, width and depth in
            pixels; None without any.
        std: Standard deviation of the noise on a coordinate of it; None without noise.
        bound: G, that samples' gradients are clipped to; None where they are not.
    """

    num_workers: int = eqx.field(static=True)
    augmentation: tuple[Augmentation, tuple[int, int, int]] | None = eqx.field(
        static=True, default=None
    )
    std: Float[Array, ""] | None = None
    bound: Float[Array, ""] | None = None

    def __call__(
        self, problem: HorizontalProblem, key: Key[Array, ""], read: Model, event: Event
    ) -> Work:
        samples, count = event.samples[0], problem.model.num_statistics
        drawn = client_work.training_key(problem, key, event.worker[0], event.job[0])
        learned = read.size - count if count else None
        augment = None
        if self.augmentation is not None:
            config, image = self.augmentation
            # Noise is drawn by the keys of workers 0 to K - 1.
            own = _of_job(key, event, self.num_workers)
            augment = partial(augmented, own, image=image, **dict(config))
        if self.bound is None:
            work = client_work.at_once(problem, read, samples, augment, drawn)
        else:
            work = client_work.clipped_per_sample(
                problem, read, samples, self.bound, learned, augment, drawn
            )
        if self.std is None:
            return work
        own = _of_job(key, event)
        return client_work.noised(work, "gaussian", own, self.std, learned)


def _of_job(key: Key[Array, ""], event: Event, first: int = 0) -> Key[Array, ""]:
    """Returns the key of a job, of workers that are numbered from `first` on."""
    own = jax.random.fold_in(key, first + event.worker[0])
    return jax.random.fold_in(own, event.job[0])


def augmented(
    key: Key[Array, ""],
    x: Float[Array, "S P"],
    *,
    image: tuple[int, int, int],
    crop: int,
    flip: bool,
) -> Float[Array, "S P"]:
    """Cuts every image out of a larger one at random, and mirrors every second one.

    Args:
        key: Key of the batch; an image's changes follow from it and from its place.
        x: Images plane by plane, row by row.
        image: Height, width and depth of an image, pixels.
        crop: Pixels of zeros on each side, >= 0. The upper left corner of the crop is
            drawn from all (2 crop + 1)^2 places.
        flip: Whether images are mirrored, left and right, with a chance of 1/2.

    Source: pytorch-cifar, RandomCrop with padding and RandomHorizontalFlip.
    """
    height, width, depth = image
    of_place, of_side = jax.random.split(key)
    planes = x.reshape(-1, depth, height, width)
    if crop:
        padding = ((0, 0), (0, 0), (crop, crop), (crop, crop))
        padded = jnp.pad(planes, padding)
        corners = jax.random.randint(of_place, (len(x), 2), 0, 2 * crop + 1)

        def cut(one: Array, corner: Array) -> Array:
            at = (0, corner[0], corner[1])
            return jax.lax.dynamic_slice(one, at, (depth, height, width))

        planes = jax.vmap(cut)(padded, corners)
    if flip:
        mirrored = jax.random.bernoulli(of_side, shape=(len(x), 1, 1, 1))
        planes = jnp.where(mirrored, planes[..., ::-1], planes)
    return planes.reshape(x.shape)


class PushSum(GossipKernel):
    """Shares of models go along edges; a worker reads its model over its weight."""

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> GossipState:
        state = super().init(problem, key)
        return state._replace(shares=jnp.ones(self.num_workers, state.models.dtype))

    def read(
        self, state: GossipState, models: Model, worker: Int[Array, ""] | None = None
    ) -> Model:
        assert state.shares is not None
        shares = state.shares if worker is None else state.shares[worker]
        lacking = models.ndim - shares.ndim
        return models / shares.reshape(*shares.shape, *(1,) * lacking)

    def distance(self, state: GossipState, spread: Spread) -> Float[Array, ""]:
        apart = spread.centre - self.read_out(state)
        return super().distance(state, spread) + jnp.vdot(apart, apart)


def build(config: Decentralised, setup: RunSetup, constants: Constants) -> GossipKernel:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: Too many workers would keep each other's models.
    """
    step_size, _ = resolve(config.step_size, constants)
    scenario, mixing, K = setup.scenario, setup.mixing, setup.shape.num_clients
    protocol: Any = scenario.protocol
    pushed, window = protocol.average == "push", scenario.stop.windowed
    watched = window is not None and window.column == DISTANCE
    merging, optimizer = Averaging(), None
    if isinstance(config, Meeting):
        merging, optimizer = config.merging(), rule_of(config.optimizer)
        if config.merge == "cached" and K > MOST_KEPT:
            raise ScenarioError(
                f"algorithm.merge must be mean, age or replace with more than "
                f"{MOST_KEPT} workers, got 'cached' with {K:,}, each with as many "
                f"models; change it"
            )
    kernel = PushSum if config.pushes else GossipKernel
    return kernel(
        step_size=on_device(step_size),
        gradient=_gradient(config, setup),
        mixing=None if mixing is None else jnp.asarray(mixing, float),
        merging=merging,
        optimizer=optimizer,
        num_workers=K,
        num_messages=setup.timeline.num_registers - K if pushed else 0,
        measured=watched or DISTANCE in scenario.evaluate.metrics,
    )


def _gradient(config: Decentralised, setup: RunSetup) -> BatchGradient:
    augmentation = std = bound = None
    if isinstance(config, Meeting) and config.augmentation is not None:
        chosen = getattr(setup.scenario.problem.model, "image", None)
        image = image_shape(setup.shape.num_features, chosen)
        augmentation = config.augmentation, image
    if isinstance(config, Adp2sgd):
        noise, batch = config.noise, setup.shape.batch
        sigma = gossip_noise.sigma_of(noise, setup.shares.num_samples, batch)
        std = jnp.asarray(sigma / noise.per_mean(batch), float)
        if noise.clip == "sample":
            bound = jnp.asarray(noise.bound, float)
    return BatchGradient(setup.shape.num_clients, augmentation, std, bound)
