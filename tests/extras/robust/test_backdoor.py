"""Model replacement: at a boost of K / m a mean learns the enemies' pattern."""

from typing import Any

import pytest

from tests.runs import execute, prepared

CENTRE = [28, 29, 36, 37]
"""Pixels that honest rows need as well; of pixels that are always dark nothing honest
contradicts what enemies say, and they are learned at any boost."""
MEAN, CLIPPED = {"kind": "mean"}, {"kind": "centred_clipping", "radius": 0.1}


def ends(boost: float, by: dict[str, Any]) -> tuple[float, float]:
    """Returns test accuracy, and success of the backdoor, of 2 enemies in 20."""
    backdoor = {"kind": "backdoor", "clients": [1, 2], "features": CENTRE}
    backdoor |= {"value": 2.0, "target": 1, "boost": boost}
    rest = ({"kind": "weigh"}, by, {"kind": "step"})
    own = {"kind": "chained", "step_size": 0.3, "batch": 10, "chain": [backdoor, *rest]}
    names = ["test_accuracy", "backdoor_accuracy"]
    tree = {
        "problem": {
            "data": {"kind": "digits"},
            "partition": {"kind": "iid", "clients": 20},
            "l2": 0.001,
        },
        "clients": {"compute": {"law": "constant", "value": 1.0}},
        "protocol": {"kind": "synchronous"},
        "algorithm": own,
        "stop": {"commits": 200},
        "evaluate": {"every": {"commits": 200}, "metrics": names},
    }
    memory, _ = execute([prepared(tree)])
    accuracy, success = (memory.column("evaluations", name)[-1] for name in names)
    return accuracy, success


@pytest.mark.slow
def test_a_boost_of_clients_over_enemies_takes_a_mean_over_and_no_clipping() -> None:
    """Source: Bagdasaryan et al. (2020), section 4.2, equation (3): gamma = n / eta."""
    found = {(b, by["kind"]): ends(b, by) for b in (1, 10) for by in (MEAN, CLIPPED)}
    assert min(accuracy for accuracy, _ in found.values()) > 0.85, "nothing is seen"
    assert found[10, "mean"][1] > 0.95
    assert found[1, "mean"][1] < 0.6
    assert found[10, "centred_clipping"][1] < 0.05
