"""The asynchronous twin against the synchronous one and against hand-made orders."""

import numpy as np

from tests.reference.fedbcd_async_twin import async_fedbcd
from tests.reference.test_fedbcd_twin import (
    NUM_SAMPLES,
    assert_close,
    block,
    problem,
    start,
)

ALL = np.arange(NUM_SAMPLES)
LEFT, RIGHT = ALL[:6], ALL[6:]


class TestAsync:
    def test_in_turn_everyone_sees_the_parameters_of_the_last_serve(self):
        """Full batches, linear: H_{-k} is at the theta that the others uploaded."""
        data = problem(2)
        now = start(data)
        uploaded = list(now)
        order = [0, 1, 0, 0, 1, 1, 0]
        events = [e for k in order for e in (("serve", k, ALL), ("commit", k))]
        trace = async_fedbcd(data, now, events, 2, 0.2)
        for n, k in enumerate(order):
            uploaded[k] = now[k]
            for _ in range(2):
                seen = list(uploaded)
                seen[k] = now[k]
                now = list(now)
                now[k] = now[k] - 0.2 * block(data, seen, k, ALL)
            assert_close(trace.params[2 * n + 1][k], now[k])
        sequence = start(data)  # and this is not block descent in turn
        for k in order:
            for _ in range(2):
                sequence[k] = sequence[k] - 0.2 * block(data, sequence, k, ALL)
        assert np.abs(sequence[0] - now[0]).max() > 1e-6

    def test_only_the_batch_is_stored(self):
        data = problem(2)
        events = [
            ("serve", 0, LEFT),
            ("commit", 0),
            ("serve", 0, LEFT),
            ("commit", 0),
            ("serve", 1, ALL),
        ]
        trace = async_fedbcd(data, start(data), events, 1, 0.2)
        old, new = start(data)[0], trace.params[1][0]
        assert_close(trace.reads[2][LEFT, 0], data.x[0][LEFT] @ new)
        assert_close(trace.reads[2][RIGHT, 0], data.x[0][RIGHT] @ old)
        np.testing.assert_array_equal(trace.store[0], trace.reads[2])
        assert trace.pending[0] is None
        assert trace.pending[1] is not None

    def test_read_is_of_the_serve_and_effect_is_of_the_commit(self):
        """What happens between a party's serve and its commit does not change it."""
        data = problem(2)
        between = [("serve", 1, ALL), ("commit", 1), ("serve", 1, ALL), ("commit", 1)]
        events = [("serve", 0, ALL), *between, ("commit", 0)]
        steps = np.array([0.3, 0.2, 0.1])
        trace = async_fedbcd(data, start(data), events, 2, steps)
        alone = async_fedbcd(data, start(data), [events[0], events[-1]], 2, steps[:1])
        np.testing.assert_array_equal(trace.params[-1][0], alone.params[-1][0])
        for row in trace.params[:-1]:
            np.testing.assert_array_equal(row[0], start(data)[0])
        theta = start(data)
        for step in steps[1:]:  # party 1 reads theta_0 of before, twice
            for _ in range(2):
                theta[1] = theta[1] - step * block(data, theta, 1, ALL)
        assert_close(trace.params[-1][1], theta[1])
