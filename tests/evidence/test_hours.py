"""Processor hours: what is asked of a study, and in which order."""

import math

import pandas as pd
import pytest

from evidence import papers, rows
from evidence.generators import hours


def _study(name: str, needed: list[float], replicates: int = 3) -> hours.Studied:
    claims = pd.DataFrame({"needed": needed}).assign(
        origin="paper", says="a", open=True
    )
    about = {"replicates": replicates, "dataset": "mnist5k"}
    return hours.Studied(name, "A-1", about, False, claims, 8, False)


def _sentence(words: str, verdict: str = papers.UNSURE) -> papers.Assessed:
    """Returns a sentence on the claims that say its words, of any study."""
    cells = pd.DataFrame(columns=pd.Index(["scenario", "how"]))
    sentence = papers.Sentence("P", "figure 1", words, ("*",), words)
    return papers.Assessed(sentence, verdict, "", cells)


def _plan(
    monkeypatch: pytest.MonkeyPatch,
    studies: list[hours.Studied],
    costs: dict[str, list[hours.Estimated]],
) -> list[tuple[object, ...]]:
    judged = [_sentence("a"), _sentence("b"), _sentence("c", papers.HOLD)]
    aside = [rows.Apart("vague", "", rows.CONTENT, "more noise, more error")]
    monkeypatch.setattr(hours, "studies", lambda: studies)
    monkeypatch.setattr(hours, "costs", lambda: costs)
    monkeypatch.setattr(papers, "judge", lambda: judged)
    monkeypatch.setattr(rows, "apart", lambda: aside)
    found = hours.plan()[["study", "to", "sentences", "panels", "hours"]].fillna(-1)
    lines = found.itertuples(index=False, name=None)
    return [(str(name).split("]")[0][1:], *of) for name, *of in lines]


def test_the_most_sentences_for_an_hour_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Claims do not weigh; nor does a sentence that another study decides before."""
    both = pd.DataFrame({"says": ["a", "b", "c", "c", "c"]})
    claims = both.assign(origin=rows.PAPER, open=True, needed=8.0)
    studies = [
        _study("many claims", [8] * 9),
        _study("cheap", [8]),
        _study("both", [])._replace(claims=claims),
        _study("vague", [8]),
        _study("unknown", [8]),
        _study("of a gpu", [8]),
    ]
    costs = {
        "many claims": [hours.Estimated(15, "whole", True)],
        "cheap": [hours.Estimated(7.5, "whole", True)],
        "both": [hours.Estimated(15, "whole", True), hours.Estimated(1, "")],
        "vague": [hours.Estimated(1, "whole", True)],
        "unknown": [hours.Estimated(1, "half of it")],
        "of a gpu": [hours.Estimated(math.nan, "30 hours of a GPU", True)],
    }
    assert _plan(monkeypatch, studies, costs) == [
        # A sentence for an hour, as of both; but that adds a panel besides.
        ("both", 8, 2, 1, 2.0),
        ("cheap", 8, 0, 1, 1.0),
        ("many claims", 8, 0, 1, 2.0),
        ("of a gpu", 8, 0, 1, -1),
    ]
    said = hours.hours()
    assert "together 5.00 hours, at most 2 sentences that would count, and 3" in said
    costs["both"] = [hours.Estimated(75, "whole", True)]
    found = _plan(monkeypatch, studies, costs)
    assert [line[:3] for line in found[:2]] == [("cheap", 8, 1), ("both", 8, 1)]
    said = hours.hours().split("together")[0]
    assert "both]" not in said  # 1 + 10 > 10 hours
    assert "many claims]" in said
    lacks = hours.lacking()
    assert "| 3 of 8 | mnist5k for mnist | not kept |  | 600 | whole |" in lacks


def test_recorded_seconds_are_taken_before_an_estimate() -> None:
    one = _study("a", [6])
    one.about["elapsed_s"] = 5400
    assert hours.spent(one) == ("1.50", 1.5)


def test_trials_count_once_and_their_lack_is_said() -> None:
    one = _study("a", [6])._replace(compares=True)
    one.about.update(elapsed_s=5400)
    assert one.search_unknown
    one.about.update(tuning_s=3600)
    assert hours.spent(one) == ("2.50", 2.5)
    assert hours.hours_of(one, hours.of_file(one), 6) == 4
    assert not one.search_unknown


def test_a_gpu_is_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _study("a", [6])
    one.about.update(elapsed_s=1800, environment={"backend": "gpu"})
    costs = {"a": [hours.Estimated(40, "")]}
    monkeypatch.setattr(hours, "costs", lambda: costs)
    assert hours.spent(one) == ("0.50 of a GPU", 0.0)
    assert hours.of_file(one).minutes == 40


def test_what_is_at_the_papers_setting_offers_more_replicates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its power says eight, but ten have left the claim undecided."""
    kept = _study("kept", [8], replicates=10)._replace(kept=True)
    kept.about.update(dataset="mnist", elapsed_s=36000)
    assert _plan(monkeypatch, [kept], {}) == []
    more = kept._replace(claims=kept.claims.assign(needed=20))
    assert _plan(monkeypatch, [more], {}) == [("kept", 20, 1, 0, 20.0)]
    more.about["dataset"] = "mnist5k"
    assert _plan(monkeypatch, [more], {}) == []
    # That the paper's setting takes longer is no estimate of what there is.
    costs = {"kept": [hours.Estimated(600, "whole", True)]}
    monkeypatch.setattr(hours, "costs", lambda: costs)
    assert math.isnan(hours.cost("kept", as_it_is=True).minutes)


def test_hours_of_a_row_are_of_its_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    timed, gpu = _study("timed", [6]), _study("gpu", [6])
    timed.about.update(elapsed_s=5400)
    gpu.about.update(elapsed_s=1800, environment={"backend": "gpu"})
    studies = [timed, gpu, _study("lost", [6]), _study("idle", [6])._replace(about={})]
    listed = [
        rows.Row("A-1", "", ("timed", "lost", "idle"), "", ()),
        rows.Row("A-2", "", ("gpu", "timeline"), "", ()),
        rows.Row("A-3", "", ("lost",), "", ()),
        rows.Row("A-4", "", ("idle",), "", ()),
    ]
    monkeypatch.setattr(hours, "studies", lambda: studies)
    monkeypatch.setattr(hours, "costs", dict)
    monkeypatch.setattr(rows, "read", lambda _: listed)
    table, said = hours.by_row().split("\n\n")
    timed_, lost, gpu_ = (
        f"[{x}](../../scenarios/{x}.yaml)" for x in ("timed", "lost", "gpu")
    )
    assert table.splitlines()[2:] == [
        f"| A-1 | 1.50 | {timed_} 1.50, {lost} not recorded |",
        f"| A-2 | of a GPU | {gpu_} 0.50 of a GPU |",
    ]
    assert said.endswith("took 1.50. Not recorded: A-3.")
