"""The kernel of hierarchical averaging."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from simulator.algorithms import client_work
from simulator.algorithms.base import Event, Info, Kernel, norm, on_device
from simulator.algorithms.hierarchical.part import Hierarchical
from simulator.algorithms.step_rules import Schedule, Steps, resolve
from simulator.problems.constants import Constants
from simulator.problems.horizontal import HorizontalProblem
from simulator.setup import RunSetup
from simulator.timeline import Kind


class HierarchicalState(NamedTuple):
    """The models of the cloud and of the edges, and what these have gathered.

    Attributes:
        cloud: The cloud's model.
        edges: Each edge's model.
        sums: Sum of what each edge's clients have sent in its round.
        counts: How many they are.
        key: Key of what training draws; None without any.
    """

    cloud: Float[Array, "..."]
    edges: Float[Array, "E ..."]
    sums: Float[Array, "E ..."]
    counts: Int[Array, " E"]
    key: Key[Array, ""] | None


class HierarchicalKernel(Kernel):
    """Applies each contribution at its client's edge, and merges edges at the cloud.

    Attributes:
        step_size: Step size of the clients' local steps.
        mixing: Part of an edge's model in the cloud's, where that does not wait.
        edge_of: Edge of each client.
        sizes: Number of each edge's clients.
        local_steps: Q.
        waits: Whether the cloud waits for all edges.
    """

    step_size: Schedule | Steps
    mixing: Float[Array, ""]
    edge_of: Int[Array, " K"]
    sizes: Int[Array, " E"]
    local_steps: int = eqx.field(static=True)
    waits: bool = eqx.field(static=True)

    def init(
        self, problem: HorizontalProblem, key: Key[Array, ""]
    ) -> HierarchicalState:
        """Starts all models at the model's start."""
        weights = problem.start(key)
        edges = jnp.tile(weights, (self.sizes.size, *(1,) * weights.ndim))
        return HierarchicalState(
            cloud=weights,
            edges=edges,
            sums=jnp.zeros_like(edges),
            counts=jnp.zeros_like(self.sizes),
            key=key if problem.takes_key else None,
        )

    def step(
        self, problem: HorizontalProblem, state: HierarchicalState, event: Event
    ) -> tuple[HierarchicalState, Info]:
        """Takes the contribution of a CONTRIBUTE; of a COMMIT, at the cloud."""
        there, worker = event.present()[0], event.worker[0]
        edge = self.edge_of.at[worker].get(mode="clip")
        model = state.edges[edge]
        samples = client_work.samples_of(event, self.local_steps)[0]
        drawn = client_work.training_key(problem, state.key, worker, event.job[0])
        local = self.step_size.at(event.version)
        work = client_work.local_steps(problem, model, samples, local, key=drawn)
        total = state.sums[edge] + jnp.where(there, work.message, 0)
        count = state.counts[edge] + there
        whole = count == self.sizes[edge]
        direction = total / self.sizes[edge]
        moved = (model - local * direction).astype(model.dtype)
        model = jnp.where(whole & there, moved, model)
        edges = state.edges.at[edge].set(model)
        commits = (event.kind == Kind.COMMIT) & there
        if self.waits:
            share = (self.sizes / self.sizes.sum()).astype(model.dtype)
            merged = jnp.tensordot(share, edges, 1)
            cloud = jnp.where(commits, merged, state.cloud)
            edges = jnp.where(commits, cloud[None], edges)
        else:
            part = self.mixing.astype(model.dtype)
            merged = (1 - part) * state.cloud + part * model
            cloud = jnp.where(commits, merged, state.cloud)
            edges = edges.at[edge].set(jnp.where(commits, cloud, model))
        info = {
            "loss": jnp.where(there, work.loss, 0),
            "step_size": local,
            "gradient_norm": jnp.where(there, norm(work.message), 0),
        }
        return HierarchicalState(
            cloud=cloud,
            edges=edges,
            sums=state.sums.at[edge].set(jnp.where(whole, 0, total)),
            counts=state.counts.at[edge].set(jnp.where(whole, 0, count)),
            key=state.key,
        ), info

    def read_out(self, state: HierarchicalState) -> Float[Array, "..."]:
        """Returns the cloud's model."""
        return state.cloud


def build(
    config: Hierarchical, setup: RunSetup, constants: Constants
) -> HierarchicalKernel:
    """Builds the algorithm of a scenario."""
    step_size, _ = resolve(config.step_size, constants)
    protocol = setup.scenario.protocol
    sizes = [len(part) for part in protocol.members(setup.shape.num_clients)]
    return HierarchicalKernel(
        step_size=on_device(step_size),
        mixing=jnp.asarray(config.mixing, float),
        edge_of=jnp.asarray(np.repeat(np.arange(len(sizes)), sizes), jnp.int32),
        sizes=jnp.asarray(sizes, jnp.int32),
        local_steps=config.local_steps,
        waits=protocol.cloud == "synchronous",
    )
