"""Workers with models of their own: budgets that Theorem 2 can meet, and probes."""

import numpy as np
import pytest

from stalesim.simulator.engine.checking import check
from stalesim.simulator.engine.simulation import _row_stream
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import expand
from tests.runs import execute, prepared
from tests.unit.scenario.mistakes import changed
from tests.unit.test_gossip_runs import BASE


def check_budget(epsilon: float, iterations: int, batch: int = 8) -> None:
    """Checks workers whose noise is by a budget against their data."""
    noise = f"{{budget: {{epsilon: {epsilon}, iterations: {iterations}}}}}"
    changes = {"{sigma: 1}": noise, "batch: 8": f"batch: {batch}"}
    (run,) = expand(loads(changed("scenario gossip", changes), "study.yaml"))
    check(run)


def refusal(epsilon: float, iterations: int, batch: int = 8) -> str:
    with pytest.raises(ScenarioError) as caught:
        check_budget(epsilon, iterations, batch)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


def least_of(message: str) -> float:
    """Returns the epsilon that a refusal names."""
    begun = "algorithm.noise.budget.epsilon must be at least "
    assert message.startswith(begun)
    return float(message.removeprefix(begun).split()[0])


def test_a_budget_that_theorem_2_cannot_meet_is_refused_with_one_that_it_can() -> None:
    message = refusal(0.5, 600)
    least = least_of(message)
    assert "for Theorem 2 to hold, got 0.5" in message
    assert message.endswith("; raise it, or give sigma")
    assert "fails order: alpha must be > 1" in message
    assert least_of(refusal(0.97 * least, 600)) == least
    check_budget(least, 600)


def test_a_budget_that_needs_too_little_noise_is_not_to_be_raised() -> None:
    # More noise than the theorem asks for would do: its sigma / sensitivity is 0.58.
    assert refusal(10, 100).endswith("; lower it, or give sigma")


def test_where_no_epsilon_can_be_met_none_is_named() -> None:
    # 300 of 4 * 359 samples: 2.5 times the rate is above 1 / e, so no order is left.
    assert "inf" not in refusal(9, 600, batch=300)


def test_gradients_of_workers_can_be_probed() -> None:
    probe = {"probe": {"every": 7, "what": ["message", "gradient", "state"]}}
    memory, _ = execute([prepared(BASE, probe)])
    assert memory.column("probes", "commit").tolist() == [7 * n for n in range(1, 18)]
    sent, found = memory.column("probes", "message"), memory.column("probes", "state")
    assert sent.shape == found.shape == (17, 650)
    np.testing.assert_array_equal(sent, memory.column("probes", "gradient"))
    rows = np.isin(memory.column("commits", "commit"), range(7, 120, 7))
    rows &= ~np.isnan(memory.column("commits", "loss"))
    np.testing.assert_allclose(
        np.linalg.norm(sent, axis=1),
        memory.column("commits", "gradient_norm")[rows],
        rtol=1e-5,
    )
    np.testing.assert_array_equal(
        memory.column("probes", "client"), memory.column("commits", "client")[rows]
    )
    assert (np.abs(found).max(axis=1) > 0).any()


def test_every_commit_can_be_probed_and_nothing_else() -> None:
    feed, kinds = _row_stream(prepared(BASE, {"probe": {"every": 1}}), 64), []
    while not feed.ended:
        piece = feed.next(64)
        if piece.probed:
            kinds.append(Kind(piece.rows.kind[0]))
    assert kinds == [Kind.COMMIT] * 120
