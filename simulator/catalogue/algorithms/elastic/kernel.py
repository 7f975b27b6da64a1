"""The kernel of elastic averaging SGD."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.kernel import Event, Info, Kernel, norm, on_device
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from .part import Easgd


class ElasticState(NamedTuple):
    """The centre, and the clients' models.

    Attributes:
        centre: The server's model.
        models: Each client's model, as it was at its last exchange.
        pulls: What that exchange has moved it by since.
        key: Key of what training draws; None without any.
    """

    centre: Float[Array, "..."]
    models: Float[Array, "K ..."]
    pulls: Float[Array, "K ..."]
    key: Key[Array, ""] | None


class ElasticKernel(Kernel[HorizontalProblem, ElasticState]):
    """Lets clients step on their own, and exchanges with the centre at each arrival.

    Attributes:
        step_size: Step size of the clients' steps.
        moving_rate: Part of the distance by which both sides move.
        local_steps: Q.
        num_clients: K.
    """

    step_size: Schedule | Steps
    moving_rate: Float[Array, ""]
    local_steps: int = eqx.field(static=True)
    num_clients: int = eqx.field(static=True)

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> ElasticState:
        weights = problem.start(key)
        models = jnp.tile(weights, (self.num_clients, *(1,) * weights.ndim))
        return ElasticState(
            centre=weights,
            models=models,
            pulls=jnp.zeros_like(models),
            key=key if problem.takes_key else None,
        )

    def step(
        self, problem: HorizontalProblem, state: ElasticState, event: Event
    ) -> tuple[ElasticState, Info]:
        there, dtype = event.present(), state.centre.dtype
        local = self.step_size.at(event.version)
        before = state.models.at[event.worker].get(mode="fill", fill_value=0)
        pulls = state.pulls.at[event.worker].get(mode="fill", fill_value=0)
        samples = client_work.samples_of(event, self.local_steps)

        def work(
            worker: Int[Array, ""],
            job: Int[Array, ""],
            model: Float[Array, "..."],
            pull: Float[Array, "..."],
            batches: Int[Array, "Q S"],
        ) -> tuple[Float[Array, "..."], Float[Array, ""], Float[Array, ""]]:
            drawn = client_work.training_key(problem, state.key, worker, job)
            # The first gradient is taken where the client was before its exchange.
            first = client_work.local_steps(
                problem, model, batches[:1], local, key=drawn
            )
            model = model + pull - local * first.message
            total, loss = first.message, first.loss
            if self.local_steps > 1:
                # Steps draw by their number in a job, which is in two parts here.
                after = None if drawn is None else jax.random.fold_in(drawn, 1)
                rest = client_work.local_steps(
                    problem, model, batches[1:], local, key=after
                )
                model = model - local * rest.message
                total = total + rest.message
                loss = (loss + (self.local_steps - 1) * rest.loss) / self.local_steps
            return model.astype(dtype), loss, norm(total)

        models, losses, norms = jax.vmap(work)(
            event.worker, event.job, before, pulls, samples
        )
        mask = there.reshape(-1, *(1,) * state.centre.ndim)
        apart = jnp.where(mask, models - state.centre[None], 0)
        pull = self.moving_rate.astype(dtype) * apart
        info = {
            "loss": jnp.where(there, losses, 0).sum() / jnp.maximum(there.sum(), 1),
            "step_size": local,
            "gradient_norm": jnp.where(there, norms, 0).max(),
        }
        return ElasticState(
            centre=state.centre + pull.sum(axis=0),
            models=state.models.at[event.worker].set(models, mode="drop"),
            pulls=state.pulls.at[event.worker].set(-pull, mode="drop"),
            key=state.key,
        ), info

    def read_out(self, state: ElasticState) -> Float[Array, "..."]:
        return state.centre


def build(config: Easgd, setup: RunSetup, constants: Constants) -> ElasticKernel:
    """Builds the algorithm of a scenario."""
    step_size, _ = resolve(config.step_size, constants)
    num_clients = setup.shape.num_clients
    rate = 0.9 / num_clients if config.moving_rate is None else config.moving_rate
    return ElasticKernel(
        step_size=on_device(step_size),
        moving_rate=jnp.asarray(rate, float),
        local_steps=config.local_steps,
        num_clients=num_clients,
    )
