"""Deep vertical learning against a plain network of the same shape, trained by Optax.

    python -m evidence.studies.deep_vertical [SEEDS]     # default: 3

Two things are compared on drawn series of the shape of MIMIC-III, four parties with
LSTMs and one layer at the server. Test AUC after as many mini-batches: the simulator's
centralised VAFL, and a network rewritten with Equinox, drawn and trained by Optax on
batches of its own; both with plain SGD. They start differently: Equinox's cells have
one bias where ours have two, as PyTorch's, and its layers a law of their own. And
processor time of an update of all blocks: the engine's compiled rows against the same
number of steps of the plain network in one compiled loop.
"""

import sys
import time
from typing import Any

from stalesim.simulator.engine import device

device.before_import()

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.metrics import roc_auc_score

from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

UPDATES, BATCH, CELLS, FRAMES = 400, 64, 16, 48
STEP = 0.2


def setting() -> Scenario:
    return Scenario.model_validate(
        {
            "name": "deep",
            "problem": {
                "data": {
                    "kind": "synthetic_series",
                    "num_samples": 10_000,
                    "frames": FRAMES,
                    "features": 34,
                    "scale": "standard",
                },
                "partition": {"kind": "views", "parties": 4},
                "model": {
                    "kind": "lstm",
                    "layers": 1,
                    "cells": CELLS,
                    "frames": FRAMES,
                },
                "server": {"width": CELLS},
            },
            "protocol": {
                "kind": "centralised",
                "step": {"law": "constant", "value": 1},
            },
            "algorithm": {
                "kind": "vafl",
                "step_size": STEP,
                "batch": BATCH,
                "upload": "all",
            },
            "stop": {"commits": UPDATES},
            "evaluate": {"every": {"commits": UPDATES}, "metrics": ["test_auc"]},
        }
    )


class Party(eqx.Module):
    """Both directions, then one forwards, of Equinox's own cells."""

    ahead: eqx.nn.LSTMCell
    back: eqx.nn.LSTMCell
    last: eqx.nn.LSTMCell

    def __init__(self, width: int, key: Any) -> None:
        one, two, three = jax.random.split(key, 3)
        self.ahead = eqx.nn.LSTMCell(width, CELLS, key=one)
        self.back = eqx.nn.LSTMCell(width, CELLS, key=two)
        self.last = eqx.nn.LSTMCell(2 * CELLS, CELLS, key=three)

    def __call__(self, frames: Any) -> Any:
        def along(cell: Any, x: Any) -> tuple[Any, Any]:
            start = jnp.zeros(CELLS), jnp.zeros(CELLS)

            def step(state: Any, frame: Any) -> tuple[Any, Any]:
                state = cell(frame, state)
                return state, state[0]

            return jax.lax.scan(step, start, x)

        both = [along(self.ahead, frames)[1], along(self.back, frames[::-1])[1][::-1]]
        (output, _), _ = along(self.last, jnp.concatenate(both, axis=1))
        return output


class Network(eqx.Module):
    parties: list[Party]
    server: eqx.nn.Linear

    def __init__(self, widths: list[int], key: Any) -> None:
        *keys, last = jax.random.split(key, len(widths) + 1)
        self.parties = [
            Party(width, own) for width, own in zip(widths, keys, strict=True)
        ]
        self.server = eqx.nn.Linear(len(widths) * CELLS, 1, key=last)

    def __call__(self, views: list[Any]) -> Any:
        sent = [own(x) for own, x in zip(self.parties, views, strict=True)]
        return self.server(jnp.concatenate(sent))[0]


def plain(views: list[Any], y: Any, tests: list[Any], seed: int) -> Any:
    """Returns logits of the test rows after training, and seconds of an update."""
    rule = optax.sgd(STEP)
    network = Network([x.shape[2] for x in views], jax.random.key(seed))
    state = rule.init(eqx.filter(network, eqx.is_array))
    draw = np.random.default_rng(seed)
    batches = [draw.choice(len(y), BATCH, replace=False) for _ in range(UPDATES)]
    arrays, rest = eqx.partition(network, eqx.is_array)

    @jax.jit
    def train(arrays: Any, state: Any, batches: Any) -> Any:
        def step(carry: Any, ids: Any) -> tuple[Any, None]:
            arrays, state = carry

            def loss(arrays: Any) -> Any:
                own = eqx.combine(arrays, rest)
                z = jax.vmap(own)([x[ids] for x in views])
                return (jax.nn.softplus(z) - y[ids] * z).mean()

            slopes = jax.grad(loss)(arrays)
            moves, state = rule.update(slopes, state)
            return (eqx.apply_updates(arrays, moves), state), None

        return jax.lax.scan(step, (arrays, state), batches)[0]

    stacked = jnp.asarray(np.stack(batches))
    found, _ = jax.block_until_ready(train(arrays, state, stacked))
    started = time.process_time()
    jax.block_until_ready(train(arrays, state, stacked))
    each = (time.process_time() - started) / UPDATES
    return jax.jit(jax.vmap(eqx.combine(found, rest)))(tests), each


def simulated(seed: int) -> tuple[float, float]:
    """Returns the test AUC of a run, and seconds of an update."""
    prepared = simulation.prepare(
        Run(
            number=0,
            variant="base",
            parameters={},
            replicate=0,
            seed=seed,
            scenario=setting(),
        )
    )
    program, times = Program(prepared.kernel, prepared.problem), []
    for _ in range(2):  # the first one compiles
        feed = simulation._row_stream(prepared, UPDATES)
        runner = Runner(program, [feed], [prepared], UPDATES)
        started = time.process_time()
        list(runner.records())
        jax.block_until_ready(runner._carry.state.weights)
        times.append((time.process_time() - started) / UPDATES)
    model = prepared.kernel.read_out(runner._carry.state)
    return float(prepared.problem.evaluate(model, ("test_auc",))["test_auc"]), times[1]


def main(seeds: int = 3) -> None:
    first = simulation.prepare(
        Run(
            number=0,
            variant="base",
            parameters={},
            replicate=0,
            seed=0,
            scenario=setting(),
        )
    )
    data = first.shares.data
    columns = setting().problem.partition.make(data)
    views, tests = (
        [jnp.asarray(x[:, own].reshape(len(x), FRAMES, -1)) for own in columns]
        for x in (data.x_train, data.x_test)
    )
    rows = []
    for seed in range(seeds):
        logits, each = plain(views, jnp.asarray(data.y_train), tests, seed)
        rows.append((roc_auc_score(data.y_test, logits), each, *simulated(seed)))
        auc, _, ours, update = rows[-1]
        print(
            f"seed {seed}: plain AUC {auc:.4f}, {1e3 * each:.1f} ms; "
            f"simulated AUC {ours:.4f}, {1e3 * update:.1f} ms"
        )
    table = np.array(rows)
    print(
        f"{data.name}: AUC plain {table[:, 0].mean():.4f} +- {table[:, 0].std():.4f}, "
        f"simulated {table[:, 2].mean():.4f} +- {table[:, 2].std():.4f}; "
        f"time of an update {table[:, 3].min() / table[:, 1].min():.2f} of the plain"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
