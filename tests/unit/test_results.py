"""What the tables say is what happened: counts, bytes, releases, privacy."""

import numpy as np
import pytest

from stalesim.simulator.engine.results import Results
from stalesim.simulator.engine.row_stream import EvaluationPoint
from stalesim.simulator.privacy import gdp
from tests.reference.test_against_twins import carried
from tests.runs import execute, prepared, rows_of
from tests.support import SGD, Memory

PRIVATE = {
    "algorithm": {
        "perturbation": {"std": 2.0, "input_diameter": 3.0},
    },
    "evaluate": {"every": {"commits": 37}},
}
BOUNDED = {"protocol": {"kind": "bounded", "staleness_bound": 60}}


@pytest.mark.parametrize("changes", [{}, BOUNDED])
def test_releases_are_counted_per_client_and_priced(changes: dict) -> None:
    plan = prepared(PRIVATE, changes)
    memory, _ = execute([plan])
    times = memory.column("privacy", "time")
    sent = memory.column("jobs", "applied_time")
    clients = memory.column("jobs", "client")
    assert np.unique(times).size >= 6
    kinds = np.concatenate([p["kind"].codes for p in memory.tables["jobs"]])
    if changes:
        assert (kinds == 1).any()  # refreshes are releases as well
    evaluated = memory.column("evaluations", "time")
    done = memory.column("evaluations", "commits")
    commits = dict(zip(evaluated, done, strict=True))
    for time, client, releases in zip(
        times,
        memory.column("privacy", "client"),
        memory.column("privacy", "releases"),
        strict=True,
    ):
        mine = clients == client
        versions = memory.column("jobs", "commit")[mine]
        upto = (versions <= commits[time]) & (kinds[mine] == 0)
        asked = (kinds[mine] == 1) & (sent[mine] <= time)
        assert releases == upto.sum() + asked.sum()


@pytest.mark.parametrize(("upload", "ratio"), [("batch", 17 / 455), ("all", 1.0)])
def test_the_level_is_that_of_all_uploads_so_far(upload: str, ratio: float) -> None:
    plan = prepared(PRIVATE, {"algorithm": {"upload": upload}})
    memory, _ = execute([plan])
    mu = memory.column("privacy", "mu").reshape(-1, 4)
    assert (mu[0] == 0).all()
    assert (np.diff(mu, axis=0) >= 0).all()
    assert np.isfinite(mu).all()
    assert (mu[-1] > 0).all()
    # The bound by the largest sensitivity that any upload had, and by none at all.
    _, infos = carried(plan)
    norms = infos["workers/weight_norm"][:, 0]
    workers = memory.column("commits", "client")
    for client in range(4):
        z = 2.0 / (3.0 * norms[workers == client][1:])
        expected = np.sqrt(gdp.increments(z, ratio, "gdp_uniform").sum())
        assert mu[-1, client] == pytest.approx(expected, rel=1e-5)


def test_a_run_without_noise_has_no_privacy_at_all() -> None:
    memory, _ = execute(
        [prepared({"algorithm": {"perturbation": {"std": 0, "input_diameter": 1}}})]
    )
    assert np.isinf(memory.column("privacy", "mu")[-4:]).all()


@pytest.mark.parametrize(
    ("changes", "up", "down"),
    [
        ((), 4 * 17, 4 * 17),
        (({"algorithm": {"upload": "all"}},), 4 * 455, 4 * 17),
        (({"protocol": {"kind": "synchronous"}},), 4 * 17, 4 * 17),
        ((SGD,), 4 * 65 * 10, 4 * 65 * 10),
    ],
)
def test_bytes_are_those_of_the_messages(changes: tuple, up: int, down: int) -> None:
    plan = prepared(*changes)
    memory, _ = execute([plan])
    contributions = memory.column("evaluations", "contributions")[-1]
    assert memory.column("evaluations", "upload_bytes")[-1] == contributions * up
    assert memory.column("evaluations", "download_bytes")[-1] == contributions * down
    assert memory.column("jobs", "upload_bytes").sum() == contributions * up
    # Jobs under way at the end have had their message, too.
    begun = ~np.isnan(memory.column("jobs", "begun_time"))
    assert memory.column("jobs", "download_messages").sum() == begun.sum()


def test_histograms_hold_every_staleness() -> None:
    memory, _ = execute([prepared(SGD)])
    count = memory.column("staleness", "count")
    low = memory.column("staleness", "low")
    assert count.sum() == 200
    staleness = memory.column("commits", "staleness_mean")
    assert np.average(low, weights=count) == pytest.approx(staleness.mean(), rel=1e-6)
    applied = memory.column("clients", "num_applied")
    means = memory.column("clients", "staleness_mean")
    assert np.average(means, weights=applied) == pytest.approx(
        staleness.mean(), rel=1e-6
    )


def test_the_engines_ages_are_those_of_equation_3() -> None:
    plan = prepared({"stop": {"commits": 400}})
    memory, _ = execute([plan])
    rows, samples = rows_of(plan)
    stamp = np.full((455, 4), -1)
    total, count = np.zeros(4), np.zeros(4)
    for row in range(400):
        ids, party = samples[row, 0], int(rows.worker[row, 0])
        ages = row - stamp[ids]
        others = np.arange(4) != party
        total[others] += ages[:, others].sum(axis=0)
        count[others] += ids.size
        assert (
            memory.column("commits", "embedding_staleness_max")[row]
            == ages[:, others].max()
        )
        stamp[ids, party] = row
    np.testing.assert_allclose(
        memory.column("clients", "embedding_staleness_mean"), total / count, rtol=1e-5
    )


@pytest.mark.parametrize("changes", [{}, SGD, {"engine": {"chunk": 7}}])
def test_histograms_tell_the_start_from_what_follows(changes: dict) -> None:
    expon = {"clients": {"compute": {"law": "expon"}}}
    memory, _ = execute([prepared(changes, expon)])
    workers = memory.column("commits", "client")
    clients = np.unique(workers)
    # The start ends with the last of the clients' first contributions.
    over = max(int((workers == client).argmax()) for client in clients)
    assert over < 60
    pieces = memory.tables["staleness"]
    work = next(p for p in pieces if p["quantity"].words == ("contribution",))
    start = work["start"]
    assert work["count"][start].sum() == over + 1
    assert work["count"].sum() == workers.size
    ages = memory.column("commits", "staleness_mean")
    for told, part in ((start, ages[: over + 1]), (~start, ages[over + 1 :])):
        mean = np.average(work["low"][told], weights=work["count"][told])
        assert mean == pytest.approx(part.mean(), rel=1e-6)
    for client in clients:
        mine = work["client"] == client
        assert work["count"][mine].sum() == (workers == client).sum()
    if changes != SGD:
        used = next(p for p in pieces if p["quantity"].words == ("embedding",))
        # Each commit uses the embeddings of the others, once for the histogram.
        counted = [
            int(used["count"][told].sum()) for told in (used["start"], ~used["start"])
        ]
        assert counted == [3 * (over + 1), 3 * (workers.size - over - 1)]


def test_a_start_that_is_not_over_is_all_of_the_run() -> None:
    slow = {"clients": {"compute": {"law": "constant", "value": [1, 1, 1, 1, 1e6]}}}
    memory, _ = execute([prepared(SGD, slow)])
    assert memory.column("staleness", "start").all()


@pytest.mark.parametrize(
    ("stop", "commits", "fraction"),
    [
        ({"commits": 200}, 50, 0.25),
        ({"commits": None, "time": 40.0}, 50, 0.5),  # 20 s of 40
        ({"commits": 200, "contributions": 75}, 50, 2 / 3),
        ({"commits": 200}, 400, 1.0),
    ],
)
def test_a_run_that_goes_on_says_how_far_it_had_come(
    stop: dict, commits: int, fraction: float
) -> None:
    plan = prepared({"stop": stop})

    def results() -> Results:
        return Results(plan, Memory())  # pyright: ignore[reportArgumentType]

    state = results().state()
    state["last"] = [*EvaluationPoint(20.0, commits, 50, 0)]
    again = results()
    assert again.fraction == 0
    again.restore(state)
    assert again.fraction == pytest.approx(fraction)
    assert again.stop is None
    again.restore(state | {"stop": "DIVERGED", "diverged_at": 49})
    assert again.fraction == 1
    assert again.finish()["stop"] == "diverged"
    assert again.finish()["diverged_at_commit"] == 49
