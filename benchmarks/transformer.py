"""A transformer's update next to a loop of JAX written by hand, and its registers.

    python benchmarks/transformer.py [WIDTH [LAYERS [BLOCK [BATCH]]]]  # 64 2 64 16

Asynchronous SGD of 10 and of 100 clients on the text that ships, each client reading
after its own commit: the engine's compiled rows, with samples drawn and diagnostics
kept; and the same updates in one compiled loop without any simulator, of a tree of
weights and a copy of it for each client. Processor time of an update, best of turns;
compilation is not in it. Registers are those that the timeline asks for.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from stalesim.simulator.engine import device

device.before_import()

import jax
import jax.numpy as jnp
import numpy as np

from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.execute import Program, null_events, put
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

TURNS, ROWS, HEADS, STEP = 12, 20, 4, 0.1


def setting(width: int, layers: int, block: int, batch: int, clients: int) -> Scenario:
    model = {"kind": "transformer", "layers": layers, "width": width, "heads": HEADS}
    return Scenario.model_validate(
        {
            "name": "transformer",
            "problem": {
                "data": {"kind": "text", "block": block},
                "partition": {"kind": "contiguous", "clients": clients},
                "model": model,
                "l2": 0.0,
            },
            "clients": {"compute": {"law": "expon"}},
            "protocol": {"kind": "asynchronous"},
            "algorithm": {"kind": "sgd", "step_size": STEP, "batch": batch},
            "stop": {"commits": 10 * ROWS},
            "evaluate": {"every": {"commits": 10 * ROWS}},
        }
    )


def engine(run: simulation.Prepared) -> tuple[Callable[[], Any], Any]:
    """Returns work that executes some rows, and the registers that it holds."""
    program = Program(run.kernel, run.problem)
    carry = program.start(simulation.key_of(1), run.timeline.num_registers)
    feed = simulation._row_stream(run, ROWS)
    piece = feed.next(ROWS)
    events = null_events(ROWS, run.timeline.width, run.samples)
    put(events, 0, piece)
    held = {"carry": carry, "infos": program.infos(carry, events)}
    events = jax.device_put(events)

    def work() -> Any:
        held["carry"], held["infos"] = program.run(
            held["carry"], events, 0, ROWS, held["infos"]
        )
        return held["carry"]

    return work, carry.state.registers


def norm(x: Any, gain: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain


def logits(weights: Any, tokens: Any) -> Any:
    rows, length = tokens.shape
    x = weights["tokens"][tokens] + weights["places"]
    for layer in weights["layers"]:
        heads = (norm(x, layer["first"]) @ layer["inner"]).reshape(
            rows, length, 3, HEADS, -1
        )
        q, k, v = (heads[:, :, i] for i in range(3))
        score = jnp.einsum("slhe,smhe->shlm", q, k) / q.shape[-1] ** 0.5
        score = jnp.where(jnp.tril(jnp.ones((length, length), bool)), score, -jnp.inf)
        taken = jnp.einsum("shlm,smhe->slhe", jax.nn.softmax(score), v)
        x = x + taken.reshape(x.shape) @ layer["outer"]
        x = x + jax.nn.gelu(norm(x, layer["second"]) @ layer["up"]) @ layer["down"]
    return norm(x, weights["last"]) @ weights["tokens"].T


def by_hand(run: simulation.Prepared, clients: int) -> Callable[[], Any]:
    """Returns work that makes as many updates, from copies that clients have read."""
    config, data = run.problem.model.config, run.shares.data
    width, rng = config.width, np.random.default_rng(1)

    def drawn(*shape: int) -> Any:
        return jnp.asarray(0.02 * rng.normal(size=shape), jnp.float32)

    layers = [
        {
            "first": jnp.ones(width),
            "inner": drawn(width, 3 * width),
            "outer": drawn(width, width),
            "second": jnp.ones(width),
            "up": drawn(width, 4 * width),
            "down": drawn(4 * width, width),
        }
        for _ in range(config.layers)
    ]
    weights = {
        "tokens": drawn(data.num_classes, width),
        "places": drawn(data.x_train.shape[1], width),
        "layers": layers,
        "last": jnp.ones(width),
    }
    size = sum(leaf.size for leaf in jax.tree.leaves(weights))
    assert size == run.shape.num_weights, "the loop must have the same weights"
    x, y = jnp.asarray(data.x_train, jnp.int32), jnp.asarray(data.y_train)
    copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * clients), weights)
    turns = jnp.asarray(rng.integers(0, clients, ROWS), jnp.int32)
    batch = run.scenario.algorithm.batch
    ids = jnp.asarray(rng.integers(0, len(x), (ROWS, batch)), jnp.int32)

    def loss(weights: Any, tokens: Any, following: Any) -> Any:
        chances = jax.nn.log_softmax(logits(weights, tokens))
        return -jnp.take_along_axis(chances, following[..., None], -1).mean()

    @partial(jax.jit, donate_argnums=(0, 1))
    def train(weights: Any, copies: Any, turns: Any, ids: Any) -> Any:
        def update(carry: Any, row: Any) -> Any:
            (weights, copies), (who, rows) = carry, row
            read = jax.tree.map(lambda leaf: leaf[who], copies)
            value, slopes = jax.value_and_grad(loss)(read, x[rows], y[rows])
            weights = jax.tree.map(lambda w, g: w - STEP * g, weights, slopes)
            copies = jax.tree.map(lambda c, w: c.at[who].set(w), copies, weights)
            return (weights, copies), value

        return jax.lax.scan(update, (weights, copies), (turns, ids))

    held = {"at": (weights, copies)}

    def work() -> Any:
        held["at"], _ = train(*held["at"], turns, ids)
        return held["at"]

    return work


def alternately(*works: Callable[[], Any]) -> list[float]:
    """Returns the best processor time of each, measured in turns."""
    for work in works:
        jax.block_until_ready(work())
    times = []
    for _ in range(TURNS):
        times.append([])
        for work in works:
            started = time.process_time()
            jax.block_until_ready(work())
            times[-1].append((time.process_time() - started) / ROWS)
    return [min(column) for column in zip(*times, strict=True)]


def main(width: int = 64, layers: int = 2, block: int = 64, batch: int = 16) -> None:
    for clients in (10, 100):
        config = setting(width, layers, block, batch, clients)
        run = simulation.prepare(Run(0, "", {}, 0, 1, config))
        ours, registers = engine(run)
        held, size = registers.nbytes, run.shape.num_weights
        shape = registers.shape
        simulated, hand = alternately(ours, by_hand(run, clients))
        print(
            f"{clients} clients, {size:,} weights, {batch} rows of {block} tokens: "
            f"{1e3 * simulated:.2f} ms an update, {1e3 * hand:.2f} by hand, "
            f"{simulated / hand:.2f} times as long; registers {shape[0]} of "
            f"{shape[1]:,} numbers, {held / 2**20:.1f} MiB"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
