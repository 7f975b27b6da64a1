"""TiFL's choice of a tier: against a plain loop, and its published seconds a round."""

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.streams import Purpose, Streams
from tests.support import everything, played
from tests.unit.protocols.replay import workers

SEED, K, PLACES = 3, 7, 2
SCALES = [5.0, 1.0, 4.0, 2.0, 7.0, 3.0, 6.0]
"""In order of speed: clients 2, 4, 6, of tier 1; 3, 1, of tier 2; 7, 5, of tier 3."""
TIERS = ((1, 3, 5), (2, 0), (6, 4))


def twin(
    chances: list[float], number: int
) -> tuple[list[tuple[int, ...]], list[float]]:
    """Returns the clients and the end of each round (Chai et al. 2020)."""
    streams, now, first, jobs = Streams(SEED), 0.0, 0, [0] * K
    asked, ends = [], []
    for _ in range(number):
        tier_of, *keys = streams.uniforms(Purpose.SELECT, 1, first, 1 + K)
        first += 8
        tier, bound = 0, chances[0]
        while tier_of >= bound / sum(chances):
            tier += 1
            bound += chances[tier]
        mine = sorted(TIERS[tier], key=lambda c: keys[c])[:PLACES]
        took = []
        for client in mine:
            u = streams.uniforms(Purpose.COMPUTE, client, 4 * (jobs[client] // 4), 4)
            took.append(-SCALES[client] * float(np.log1p(-u[jobs[client] % 4])))
            jobs[client] += 1
        now += max(took)
        asked.append(tuple(sorted(mine)))
        ends.append(now)
    return asked, ends


def clients_of(prefer: dict, number: int = K, **entries: object) -> Clients:
    selection = {"in_flight": PLACES, "prefer": {"kind": "tiers", **prefer}}
    compute = {"law": "expon", "scale": SCALES}
    tree = {"number": number, "compute": compute, "selection": selection}
    return Clients.model_validate(tree | entries)


@pytest.mark.parametrize("chances", [None, (0.6, 0.3, 0.1), (0, 5, 1), (0, 0, 1)])
def test_rounds_are_those_of_a_plain_loop(chances: tuple[float, ...] | None) -> None:
    clients = clients_of({"tiers": 3} | ({"chances": chances} if chances else {}))
    rows, _, _ = everything(played(Synchronous(), clients, K, SEED, commits=120))
    asked, ends = twin(list(chances or (1, 1, 1)), 120)
    assert workers(rows) == asked
    np.testing.assert_allclose(rows.time, ends, rtol=1e-12)
    assert len({*asked}) > 1 or chances == (0, 0, 1)


def test_seconds_of_a_round_are_those_that_the_paper_expects() -> None:
    """R rounds take R sum_i P_i max L_i by its estimate: here 1.65 s each.

    Five tiers of ten clients that take 1 to 5 s, and rounds of five clients, with
    chances of its policy `random`. The standard error of 4,000 rounds is 0.0176 s.
    """
    clients = Clients.model_validate(
        {
            "number": 50,
            "compute": {"law": "constant", "value": "1 + floor((m - 1) / 10)"},
            "selection": {
                "in_flight": 5,
                "prefer": {"kind": "tiers", "chances": (0.7, 0.1, 0.1, 0.05, 0.05)},
            },
        }
    )
    rows, _, _ = everything(played(Synchronous(), clients, 50, commits=4000))
    took = np.diff(rows.time, prepend=0.0)
    assert took.mean() == pytest.approx(1.65, abs=3 * 0.0176)
    tiers = [{client // 10 for client in round_} for round_ in workers(rows)]
    assert all(len(each) == 1 for each in tiers)
    assert [each.pop() + 1 for each in tiers] == took.round(9).tolist()


def test_a_tier_without_free_clients_is_left_out() -> None:
    """The first tier leaves at 30 s, the others follow with equal chances."""
    leave = [1e9 if client in (*TIERS[1], *TIERS[2]) else 30 for client in range(K)]
    clients = clients_of({"tiers": 3, "chances": (1, 0, 0)}, leave=leave)
    rows, _, _ = everything(
        played(Synchronous(timeout=1), clients, K, SEED, commits=200)
    )
    groups = [tuple(c in TIERS[0] for c in each) for each in workers(rows)]
    late = rows.time > 60
    assert all(all(each) for each in groups[:3])
    assert not any(any(each) for each in np.array(groups, object)[late])
    slow = [each[0] in TIERS[2] for each in np.array(workers(rows), object)[late]]
    assert 0.3 < np.mean(slow) < 0.7


@pytest.mark.parametrize(
    ("prefer", "says"),
    [
        ({"tiers": 3, "chances": (1, 2)}, "one number for each of the 3 tiers"),
        ({"tiers": 2, "chances": (0, 0)}, "not all 0"),
        ({"tiers": 1}, "greater than or equal to 2"),
    ],
)
def test_what_does_not_fit_is_refused(prefer: dict, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        clients_of(prefer)


def test_more_tiers_than_clients_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"at most the number of clients \(7\)"):
        everything(played(Synchronous(), clients_of({"tiers": 8}), K, commits=1))
