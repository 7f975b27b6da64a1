"""Waves at once: what is made of rows before they are computed, and of their steps."""

import jax.numpy as jnp
import numpy as np

from stalesim.simulator.algorithms.federated.server import moved, moved_by_all
from stalesim.simulator.algorithms.federated.stages import Step
from stalesim.simulator.engine.at_once import _rows_of
from stalesim.simulator.engine.execute import null_events
from stalesim.simulator.timeline import NO_SLOT, NO_WORKER, Kind

KEPT = [3, 1, 2, 1, NO_SLOT, 2, 3]


def test_rows_behind_a_wave_are_null_and_a_register_is_written_by_the_latest() -> None:
    events = null_events(7, 1, (1, 2))
    events = events._replace(kind=np.full(7, Kind.COMMIT, np.int32))
    events = events._replace(keep_slot=np.array(KEPT, np.int32))
    for column in (events.worker, events.read_slot):
        column[:] = np.arange(7)[:, None]
    found = _rows_of(events, jnp.int32(1), jnp.int32(5), 6)  # the last two are behind
    N, W = NO_SLOT, NO_WORKER
    assert found.keep_slot.tolist() == [N, 2, 1, N, N, N]
    assert found.kind.tolist() == [Kind.COMMIT] * 4 + [Kind.NULL] * 2
    assert found.worker[:, 0].tolist() == [1, 2, 3, 4, W, W]
    assert found.read_slot[:, 0].tolist() == [1, 2, 3, 4, N, N]


def test_steps_at_once_are_steps_one_by_one_to_the_bit() -> None:
    rng = np.random.default_rng(5)
    weights = jnp.asarray(rng.normal(size=(3, 41)), jnp.float32)
    directions = rng.normal(size=(16, 3, 41)).astype(np.float32)
    directions[[4, 15]] = np.nan  # of rows that are none
    sizes = jnp.asarray(rng.random(16), jnp.float32)
    applies = jnp.arange(16) % 11 != 4
    steps = Step(jnp.asarray(directions), sizes, sizes, applies, sizes)
    found, before = moved_by_all(weights, steps)
    for row in range(16):
        np.testing.assert_array_equal(before[row], weights)
        weights = moved(weights, Step(*(x[row] for x in steps)), None)
    np.testing.assert_array_equal(found, weights)
    assert np.isfinite(found).all()
