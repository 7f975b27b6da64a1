"""The kernel of hierarchical averaging."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from ....engine import client_work
from ....engine.kernel import Event, Info, Kernel, norm, on_device
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from .part import Hierarchical

Model = Float[Array, "..."]
Models = Float[Array, "E ..."]


class HierarchicalState(NamedTuple):
    """The models of the cloud and of the edges, and what these have gathered.

    Of edges there is one array for each level, from the cloud down.

    Attributes:
        cloud: The cloud's model.
        models: Each edge's model.
        made: Rounds that each edge has made since its last visit above.
        away: Whether it waits for the model that comes back from there.
        come: How many of them each one above has got in its round.
        sums: Sum of the messages of each lowest edge's clients in its round.
        counts: How many they are.
        key: Random key of training; None without any.
    """

    cloud: Model
    models: tuple[Models, ...]
    made: tuple[Int[Array, " _"], ...]
    away: tuple[Bool[Array, " _"], ...]
    come: tuple[Int[Array, " _"], ...]
    sums: Models
    counts: Int[Array, " E"]
    key: Key[Array, ""] | None


class HierarchicalKernel(Kernel[HorizontalProblem, HierarchicalState]):
    """Applies each contribution at its client's edge, and merges edges above.

    Where edges do not wait for their clients, these are one more level: each is an edge
    of one client, which visits the one above with every model that it makes.

    Attributes:
        step_size: Step size of the clients' local steps.
        mixing: Fraction of an edge's model in the one above, if that does not wait.
        edge_of: Lowest edge of each client.
        sizes: Number of each edge's clients, per level.
        parents: Number of the one above each edge, for every level.
        levels: Of each level, from the cloud down, the rounds of an edge between two
            visits above, and whether the one above waits for all of its edges.
        local_steps: Q.
        proximal: Coefficient of half the squared distance from the model read, if any.
    """

    step_size: Schedule | Steps
    mixing: Float[Array, ""]
    edge_of: Int[Array, " K"]
    sizes: tuple[Int[Array, " _"], ...]
    parents: tuple[Int[Array, " _"], ...]
    levels: tuple[tuple[int, bool], ...] = eqx.field(static=True)
    local_steps: int = eqx.field(static=True)
    proximal: Float[Array, ""] | None = None

    def init(
        self, problem: HorizontalProblem, key: Key[Array, ""]
    ) -> HierarchicalState:
        weights = problem.start(key)
        number_above = (1, *(sizes.size for sizes in self.sizes[:-1]))
        models = tuple(
            jnp.tile(weights, (sizes.size, *(1,) * weights.ndim))
            for sizes in self.sizes
        )
        return HierarchicalState(
            cloud=weights,
            models=models,
            made=tuple(map(jnp.zeros_like, self.sizes)),
            away=tuple(jnp.zeros(sizes.size, bool) for sizes in self.sizes),
            come=tuple(jnp.zeros(number, jnp.int32) for number in number_above),
            sums=jnp.zeros_like(models[-1]),
            counts=jnp.zeros_like(self.sizes[-1]),
            key=key if problem.takes_key else None,
        )

    def step(
        self, problem: HorizontalProblem, state: HierarchicalState, event: Event
    ) -> tuple[HierarchicalState, Info]:
        there, worker = event.present()[0], event.worker[0]
        edge = self.edge_of.at[worker].get(mode="clip")
        lowest, sizes = state.models[-1], self.sizes[-1]
        model = lowest[edge]
        samples = client_work.samples_of(event, self.local_steps)[0]
        drawn = client_work.training_key(problem, state.key, worker, event.job[0])
        local = self.step_size.at(event.version)
        work = client_work.local_steps(
            problem, model, samples, local, self.proximal, drawn
        )
        total = state.sums[edge] + jnp.where(there, work.message, 0)
        count = state.counts[edge] + there
        whole = count == sizes[edge]
        direction = total / sizes[edge]
        moved = (model - local * direction).astype(model.dtype)
        model = jnp.where(whole & there, moved, model)
        state = state._replace(
            models=(*state.models[:-1], lowest.at[edge].set(model)),
            sums=state.sums.at[edge].set(jnp.where(whole, 0, total)),
            counts=state.counts.at[edge].set(jnp.where(whole, 0, count)),
        )
        info = {
            "loss": jnp.where(there, work.loss, 0),
            "step_size": local,
            "gradient_norm": jnp.where(there, norm(work.message), 0),
        }
        return self._upwards(state, edge, model, whole & there), info

    def _upwards(
        self,
        state: HierarchicalState,
        edge: Int[Array, ""],
        model: Model,
        ended: Bool[Array, ""],
    ) -> HierarchicalState:
        """Merges edges above as far as rounds are complete, and answers those below."""
        cloud, models, made = state.cloud, [*state.models], [*state.made]
        away, come = [*state.away], [*state.come]
        stays: list[Bool[Array, ""]] = []
        places = [edge]
        for d in reversed(range(len(models))):
            (rounds, waits), at = self.levels[d], places[0]
            its_rounds = made[d][at] + ended
            goes = ended & (its_rounds == rounds)
            stays.insert(0, ended & ~goes)
            above = self.parents[d][at]
            theirs = self.parents[d] == above
            there = come[d][above] + goes
            ended = goes & ((there == theirs.sum()) if waits else True)
            made[d] = made[d].at[at].set(jnp.where(goes, 0, its_rounds))
            away[d] = away[d].at[at].set(away[d][at] | goes)
            come[d] = come[d].at[above].set(jnp.where(ended, 0, there))
            before = models[d - 1][above] if d else cloud
            merged = self._merged(d, before, models[d], theirs, model)
            model = jnp.where(ended, merged, before)
            if d:
                models[d - 1] = models[d - 1].at[above].set(model)
            else:
                cloud = model
            places.insert(0, above)
        answers, answer = ended[None], cloud[None]
        for d, parents in enumerate(self.parents):
            back = away[d] & answers[parents]
            each = back.reshape(-1, *(1,) * cloud.ndim)
            answer = models[d] = jnp.where(each, answer[parents], models[d])
            away[d] &= ~back
            answers = back.at[places[d + 1]].max(stays[d])
        return state._replace(
            cloud=cloud,
            models=tuple(models),
            made=tuple(made),
            away=tuple(away),
            come=tuple(come),
        )

    def _merged(
        self, d: int, model: Model, below: Models, own: Bool[Array, " E"], newest: Model
    ) -> Model:
        """Returns what a model becomes when the newest of its own below has come."""
        if not self.levels[d][1]:
            part = self.mixing.astype(model.dtype)
            return (1 - part) * model + part * newest
        sizes = jnp.where(own, self.sizes[d], 0)
        return jnp.tensordot((sizes / sizes.sum()).astype(model.dtype), below, 1)

    def read_out(self, state: HierarchicalState) -> Model:
        return state.cloud


def build(
    config: Hierarchical,
    setup: RunSetup,
    constants: Constants,
    kind: type[HierarchicalKernel] = HierarchicalKernel,
    **more: Array,
) -> HierarchicalKernel:
    """Builds the algorithm of a scenario, of a kind with more attributes."""
    step_size, _ = resolve(config.step_size, constants)
    protocol: Any = setup.scenario.protocol
    lowest = [len(part) for part in protocol.members(setup.shape.num_clients)]
    levels, parents, number = [], [], 1
    for level in protocol.levels:
        levels.append((level.rounds, level.cloud == "synchronous"))
        parents.append(np.repeat(np.arange(number), level.edges))
        number *= level.edges
    if protocol.levels[-1].edge == "asynchronous":
        levels.append((1, False))
        parents.append(np.repeat(np.arange(number), lowest))
        lowest = [1] * setup.shape.num_clients
    sizes = [np.array(lowest)]
    for above in reversed(parents[1:]):
        sizes.insert(0, np.bincount(above, sizes[0]))
    return kind(
        step_size=on_device(step_size),
        mixing=jnp.asarray(config.mixing, float),
        edge_of=jnp.asarray(np.repeat(np.arange(len(lowest)), lowest), jnp.int32),
        sizes=tuple(jnp.asarray(each, jnp.int32) for each in sizes),
        parents=tuple(jnp.asarray(each, jnp.int32) for each in parents),
        levels=tuple(levels),
        local_steps=config.local_steps,
        **more,
    )
