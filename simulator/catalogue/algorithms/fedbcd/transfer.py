"""FedBCD for federated transfer learning, whose loss is of the general form.

Source: FedBCD, equations 6 to 8, Algorithms 2 and 3, and section 7 (transfer
learning); F-15 in evidence/pages/decisions.md.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from ....engine.kernel import Event, Info, Kernel, norm
from ....engine.step_rules import Schedule, Steps
from ....files.timeline import NO_SAMPLE
from ....problem.vertical import LABELLED, OTHER, Model, TransferProblem

Gradient = Callable[[Float[Array, " P"]], tuple[Float[Array, ""], Float[Array, " P"]]]


TransferState = Float[Array, "M P"]
"""Weights of each of the two parties."""


class TransferDescent(Kernel[TransferProblem, TransferState]):
    """A row is an exchange of components and the local steps of its parties.

    Received values are frozen: the labelled party has the other's u of the batch, the
    other Phi'Phi, the signed Phi and the labelled party's u, from which each makes its
    exact gradient at its own current model. Phi is computed again in every local step
    of the labelled party, from all of its samples.

    Attributes:
        step_size: Step size of the local steps, constant within a row (F-05).
        proximal: mu of the pull towards the model of the exchange (F-14); None without.
        local_steps: Q.
    """

    step_size: Schedule | Steps
    proximal: Float[Array, ""] | None
    local_steps: int = eqx.field(static=True)

    def init(self, problem: TransferProblem, key: Key[Array, ""]) -> TransferState:
        return problem.start(key)

    def step(
        self, problem: TransferProblem, state: TransferState, event: Event
    ) -> tuple[TransferState, Info]:
        num_rounds = event.version * event.worker.size // problem.num_parties
        step_size = self.step_size.at(num_rounds)
        gradients = _gradients(problem, state, event)
        ends = [
            self._descend(gradients[party], state[party], step_size)
            for party in (OTHER, LABELLED)
        ]
        moved, first, losses = (jnp.stack(parts) for parts in zip(*ends, strict=True))
        # In sequence, one party moves at a time; a NULL row moves none.
        moves = jnp.any(jnp.arange(2)[:, None] == event.worker[None], axis=1)[:, None]
        weights = jnp.where(moves, moved, state)
        info = {
            "loss": losses[LABELLED],
            "gradient_norm": norm(jnp.where(moves, first, 0)),
            "step_size": step_size,
            "moved_norm": norm(weights - state),
        }
        return weights, info

    def read_out(self, state: TransferState) -> Model:
        return state, None

    def _descend(
        self, gradient: Gradient, start: Float[Array, " P"], step_size: Array
    ) -> tuple[Float[Array, " P"], Float[Array, " P"], Float[Array, ""]]:
        """Makes local steps; returns the end, the first gradient and the first loss."""

        def pulled(weights: Array) -> Array:
            _, found = gradient(weights)
            if self.proximal is None:
                return found
            return found + self.proximal * (weights - start)

        loss, first = gradient(start)
        moved = jax.lax.fori_loop(
            1,
            self.local_steps,
            lambda _, weights: weights - step_size * pulled(weights),
            start - step_size * first,
        )
        return moved, first, loss


def _gradients(
    problem: TransferProblem, weights: Float[Array, "M P"], event: Event
) -> dict[int, Gradient]:
    """Returns what each party can compute after the exchange, by party."""
    samples = event.samples[0]
    y = problem.y.at[samples].get(mode="fill", fill_value=0)
    present = samples != NO_SAMPLE
    other = problem.embed(OTHER, weights[OTHER], samples)
    labelled = problem.embed(LABELLED, weights[LABELLED], samples)
    phi = problem.prototype(weights[LABELLED])
    l2 = problem.l2

    def at_labelled(w: Array) -> Float[Array, ""]:
        u = problem.embed(LABELLED, w, samples)
        return problem.common_loss(problem.prototype(w), u, other, y, present)

    def at_other(w: Array) -> Float[Array, ""]:
        u = problem.embed(OTHER, w, samples)
        return problem.common_loss(phi, labelled, u, y, present)

    def regularised(of: Callable[[Array], Array]) -> Gradient:
        def gradient(w: Array) -> tuple[Array, Array]:
            loss, found = jax.value_and_grad(of)(w)
            return loss, found + l2 * w

        return gradient

    return {OTHER: regularised(at_other), LABELLED: regularised(at_labelled)}
