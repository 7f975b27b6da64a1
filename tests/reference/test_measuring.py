"""What is measured of contributions, against formulas on the twin's messages.

Diagnostics are stored in single precision, whose numbers have a relative error of 6e-8;
messages are summed in double precision.
"""

import math
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files.timeline import Kind
from tests.reference import server_twin as twin
from tests.reference.methods_support import K, assert_like_twin, tree_of

BY_AGE = {"kind": "weigh", "weight": {"kind": "polynomial", "exponent": 0.7}}
BY_SIZE = {"kind": "weigh", "weighting": "samples"}
UNEVEN = {"problem": {"partition": {"kind": "sizes", "clients": K, "weights": "m"}}}
PROBED = {"probe": {"every": 1, "what": ["message"]}}
BUFFERS = {"kind": "buffered", "size": 4}
RUNS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "one by one": (BY_AGE, {}, {}),
    "rounds by samples": (BY_SIZE, {"kind": "synchronous"}, UNEVEN),
    "rounds of single messages": (BY_SIZE, {"kind": "synchronous"}, UNEVEN | PROBED),
    "buffers by staleness": (BY_AGE, BUFFERS, {}),
}


class Measures:
    """What the server measures.

    Attributes:
        sizes: Of each commit, (sum w)^2 / sum w^2 (Kish, 1965).
        cosines: Of the angle between the weighted sums of a row and of the last one.
    """

    def __init__(self) -> None:
        self.sizes: list[float] = []
        self.cosines: list[float] = []
        self._last: np.ndarray | None = None

    def size(self, _: twin.Server, jobs: list[twin.Job]) -> None:
        weights = [job.weight * job.share for job in jobs]
        self.sizes.append(sum(weights) ** 2 / sum(w * w for w in weights))

    def weigh(self, **options: Any) -> twin.Stage:
        """Weighs, and then measures the cosine, which depends on the weights."""
        weighed = twin.weigh(**options)

        def stage(server: twin.Server, jobs: list[twin.Job]) -> None:
            weighed(server, jobs)
            self.cosine(server, jobs)

        return stage

    def cosine(self, _: twin.Server, jobs: list[twin.Job]) -> None:
        now = sum(job.weight * job.share * job.message for job in jobs)
        last, self._last = self._last, now  # pyright: ignore
        if last is None:
            self.cosines.append(math.nan)
        else:
            lengths = math.sqrt(last @ last) * math.sqrt(now @ now)
            self.cosines.append(float(last @ now) / lengths)


@pytest.mark.parametrize("name", RUNS)
def test_measures_are_those_of_the_formulas(name: str) -> None:
    weigh, protocol, changes = RUNS[name]
    kinds = ["local_work", "effective_size", "cosine", "weigh", "mean", "step"]
    chain = [weigh if kind == "weigh" else {"kind": kind} for kind in kinds]
    tree = tree_of(protocol, {"kind": "chained", "chain": chain}, **changes)
    measures = Measures()
    added: dict[str, Any] = {
        "effective_size": ("commit", lambda: measures.size),
        "cosine": ("arrival", lambda: lambda server, jobs: None),
        "weigh": ("arrival", measures.weigh),
    }
    memory, _ = assert_like_twin(tree, stages=twin.STAGES | added)
    kind = np.concatenate([part["kind"].codes for part in memory.tables["commits"]])
    sizes = memory.column("commits", "effective_contributions")[kind == Kind.COMMIT]
    np.testing.assert_allclose(sizes, measures.sizes, rtol=1e-6)
    cosines = memory.column("commits", "contribution_cosine")
    np.testing.assert_allclose(cosines, measures.cosines, rtol=0, atol=1e-6)
    assert min(measures.cosines[1:]) < 0 < max(measures.cosines[1:])
