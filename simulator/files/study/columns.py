"""Names, types, units and meanings of the trace's columns: the one place for them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Int

from ...parts import metrics
from ...parts.attached import extras
from ..timeline import NO_COMMIT, NO_SLOT, NO_WORKER

if TYPE_CHECKING:
    import pyarrow as pa


NO_CLIENT = 2**31 - 1
"""The missing client of arrays; `timeline.NO_WORKER` and `timeline.SERVER`."""


def outward(numbers: Int[np.ndarray, " n"]) -> "pa.Array":
    """Returns a column of a file from numbers that count from 0."""
    import pyarrow as pa

    numbers = np.asarray(numbers)
    missing = numbers == NO_CLIENT
    counted = np.where(missing, 0, numbers) + 1
    mask = missing if missing.any() else None
    return pa.array(counted.astype(np.int32), pa.int32(), mask=mask)


def inward(column: object) -> Int[np.ndarray, " n"]:
    """Returns numbers that count from 0 from a column of a file."""
    import pyarrow.compute as pc

    counted = pc.fill_null(column, 0).to_numpy()
    return np.where(counted == 0, NO_CLIENT, counted - 1).astype(np.int32)


class TraceColumn(NamedTuple):
    """One column of a table: its type, its unit (`""` if none) and its meaning.

    Numbers of clients, parties and workers are `numbered`: from 1 in files. In a
    column's files, `none` is the number for nothing.
    """

    dtype: str
    unit: str
    meaning: str
    numbered: bool = False
    none: int | None = None


def _column(dtype: str) -> Callable[..., TraceColumn]:
    """Returns what makes a column of a type, of its meaning and its unit."""

    def column(
        meaning: str, unit: str = "", *, numbered: bool = False, none: int | None = None
    ) -> TraceColumn:
        return TraceColumn(dtype, unit, meaning, numbered, none)

    return column


_word, _int32, _int64 = _column("string"), _column("int32"), _column("int64")
_float32, _float64 = _column("float32"), _column("float64")
_time = partial(_float64, unit="virtual s")

_RUN = _int32("run of the study; `runs` of the manifest says which")
_CLIENT = _int32("client, party or worker, from 1", numbered=True)

COLUMNS: dict[str, dict[str, TraceColumn]] = {
    "commits": {
        "run": _RUN,
        "commit": _int64("version that the row made, from 1", "commits"),
        "time": _time("when it was made"),
        "kind": _word("COMMIT, or REFRESH or CONTRIBUTE, which make no version, ..."),
        "round": _int32("round of round-based protocols, else 0"),
        "num_contributions": _int32(
            "of a COMMIT: all that it applies, those that had gathered among them; a "
            "CONTRIBUTE is one of these, so that sums are over one kind"
        ),
        "client": _int32(
            "from 1: who contributed with this row, where it is one alone; who asked "
            "for a REFRESH; "
            "who began an AVERAGE; who sent (SEND) or got (MERGE) a model; else null",
            numbered=True,
        ),
        "staleness_mean": _float32(
            "mean over these contributions of commits since their read; in gossip by "
            "rounds, those of its own round do not count",
            "commits",
        ),
        "staleness_max": _int32("the largest of them", "commits"),
        # every further column is a diagnostic of the algorithm:
        "loss": _float32("loss of the contributions' own batches", metrics.OF_LOSS),
        "gradient_norm": _float32("Euclidean norm of the applied gradient"),
        "step_size": _float32("step size of the clients"),
        "step_bound": _float32(
            "largest step that FedBCD's Theorem 2 allows; NaN if unknown"
        ),
        "moved_norm": _float32("FedBCD: norm of what the parties' local steps moved"),
        "embedding_staleness_mean": _float32(
            "vertical: mean age of the other parties' embeddings used (VAFL eq. 3)",
            "commits",
        ),
        "embedding_staleness_max": _float32("the largest of them", "commits"),
        "noise_std": _float32("standard deviation of the upload's noise"),
        "clipped_fraction": _float32(
            "of the batch's samples, or 0 or 1 for its mean", "fraction"
        ),
        "noise_norm": _float32("Euclidean norm of the gradient's noise"),
        "stage": _float32("of MAPA's server, from 1"),
        "effective_contributions": _float32(
            "of a COMMIT: (sum of weights)^2 / sum of squares of its contributions"
        ),
        "contribution_cosine": _float32(
            "of this row's weighted sum of contributions and the last one before it"
        ),
        "sensitivity": _float32(
            "of the uploaded embedding to one input (VAFL, appendix F), or of the "
            "server's stage (MAPA)"
        ),
    },
    "probes": {
        "run": _RUN,
        "commit": _int64("version that the row made, from 1", "commits"),
        "time": _time("when it was made"),
        "client": _CLIENT,
        "job": _int32("which of the client's jobs"),
        "samples": TraceColumn(
            "list of int32", "", "training rows of its batch, 2**31 - 1 for padding"
        ),
        "message": TraceColumn("list of float32", "", "what the server received, flat"),
        "gradient": TraceColumn(
            "list of float32", "", "the gradient in it, before clipping and noise"
        ),
        "state": TraceColumn(
            "list of float32", "", "weights that it was taken at, flat"
        ),
    },
    "jobs": {
        "run": _RUN,
        "client": _CLIENT,
        "job": _int32("number of the job of that client, from 0"),
        "kind": _word("work (a contribution) or refresh (bounded delay)"),
        "read_time": _time("when the client read the state"),
        "begun_time": _time("when it began to compute"),
        "computed_time": _time("when it had computed"),
        "sent_time": _time("when its upload began"),
        "arrived_time": _time("when its upload had arrived"),
        "applied_time": _time("when it was applied; else NaN"),
        "read_version": _int64("version that it read", "commits"),
        "commit": _int64(
            "version that it is part of; missing (in files 2**63 - 1) if not applied",
            "commits",
            none=NO_COMMIT,
        ),
        "upload_bytes": _int64(
            "sent to the server, whatever becomes of the job", "bytes"
        ),
        "download_bytes": _int64(
            "received by the client, whatever becomes of the job", "bytes"
        ),
        "upload_messages": _int32("sent to the server, repeats included", "messages"),
        "download_messages": _int32("received by the client", "messages"),
        "outcome": _word("APPLIED, IN_FLIGHT, LOST, ..."),
        "local_steps": _int32("its own; where they change alone", "steps"),
    },
    "evaluations": {
        "run": _RUN,
        "time": _time("when the model was evaluated"),
        "commits": _int64("made so far; in printed tables server updates", "commits"),
        "contributions": _int64(
            "that the server took so far; a buffer not yet full is counted; printed "
            "tables call them client updates"
        ),
        "epochs": _float64("passes over the data so far", "epochs"),
        "upload_bytes": _int64(
            "of the contributions so far, and of further uploads; `jobs` has those of "
            "discarded, lost and waiting work",
            "bytes",
        ),
        "download_bytes": _int64("of the contributions so far", "bytes"),
        "rounds": _float64("completed so far, where there are any", "rounds"),
        "messages": _int64("of those bytes, up and down", "messages"),
        # every further column is a metric:
        **{m.name: _float64(m.meaning, m.unit) for m in metrics.own()},
    },
    "workers": {
        "run": _RUN,
        "time": _time("of the evaluation"),
        "commits": _int64("made so far", "commits"),
        "client": _CLIENT,
        # every further column is a metric of its own model:
        **{
            m.name: _float64("of its own model, test rows", m.unit)
            for m in metrics.own()
            if m.models is metrics.Models.EACH_WORKER
        },
        # or of the server's model:
        **{
            m.name: _float64("test rows, for its mix of labels", m.unit)
            for m in metrics.own()
            if m.each is metrics.Each.CLIENT
        },
    },
    "labels": {
        "run": _RUN,
        "time": _time("of the evaluation"),
        "commits": _int64("made so far", "commits"),
        "label": _int32("class of the test rows, from 0"),
        **{
            m.name: _float64("of its test rows; NaN of none", m.unit)
            for m in metrics.own()
            if m.each is metrics.Each.LABEL
        },
    },
    "clients": {
        "run": _RUN,
        "client": _CLIENT,
        "client_group": _word("name of its group in the scenario, where it has groups"),
        "client_label": _word(
            "what the log calls it, where that is no number in order, or the data"
        ),
        "role": _word("what the algorithm makes of it, if anything"),
        "num_jobs": _int64("jobs started, refreshes among them"),
        "num_applied": _int64("contributions applied"),
        "staleness_mean": _float64(
            "of all its contributions of the run, those of its start among them",
            "commits",
        ),
        "staleness_max": _int64("the largest of them", "commits"),
        # not of recorded timelines:
        "num_features": _int32("columns that it holds"),
        "num_samples": _int32("rows that it holds"),
        # where a partition has a `pairing`:
        "compute_median_s": _time("median of its law of computing"),
        "paired_by": _float64("measure of its share, by which it was paired with that"),
        "embedding_staleness_mean": _float64(
            "age of its embeddings when others used them", "commits"
        ),
        "embedding_staleness_max": _float64("the largest of them", "commits"),
        "releases": _int64("messages sent that depend on its data", "messages"),
        # of summaries alone; after the start of the run, as `start_s` has it:
        "steady_contributions": _int64("contributions applied after the start"),
        "steady_staleness_mean": _float64("of those", "commits"),
        "steady_waiting_mean": _time("from arrival to application of those"),
        "steady_queued_mean": _time("from read to the beginning of computing of those"),
        "utilisation": _float64(
            "of the time after the start, in which it computed", "fraction"
        ),
        "uploads": _int64("sent, repeats included", "messages"),
        "incidents": _int64("in the whole run"),
    },
    # of summaries of timelines alone:
    "ages": {
        "run": _RUN,
        "client_group": _word(
            "name of the clients' group, where the scenario has groups"
        ),
        "start": TraceColumn(
            "bool", "", "whether it was until `start_s`, the end of the run's start"
        ),
        "staleness": _int64("of contributions", "commits"),
        "count": _int64("contributions of that staleness"),
    },
    "staleness": {
        "run": _RUN,
        "client": _CLIENT,
        "quantity": _word("contribution or embedding"),
        "start": TraceColumn(
            "bool",
            "",
            "whether it was before every client had had a contribution applied: the "
            "start of the run, which no steady state is to be compared with",
        ),
        "low": _int64("smallest staleness of the bin", "commits"),
        "high": _int64("one above the largest of the bin", "commits"),
        "count": _int64("occurrences"),
    },
    "privacy": {
        "run": _RUN,
        "time": _time("of the evaluation"),
        "client": _CLIENT,
        "releases": _int64(
            "sent so far, applied or not; in the last rows until the run ended; where "
            "the noise is the server's, the sum over commits of the square of the "
            "client's messages in each",
            "messages",
        ),
        "mu": _float64("Gaussian differential privacy level so far (VAFL), or null"),
        "epsilon": _float64("of the client's own messages so far, with delta; or null"),
        "delta": _float64("that epsilon holds with, or null"),
        "accountant": _word("who says so"),
        "formal": TraceColumn(
            "bool", "", "a proved guarantee, or a paper's own accounting"
        ),
        "protects": _word(
            "what differs between the data sets that epsilon or mu is of: one sample "
            "of one client, or one client's whole contribution, replaced; or one "
            "client with all that it sends, zeroed"
        ),
    },
    "incidents": {
        "run": _RUN,
        "time": _time("when it happened"),
        "client": _CLIENT,
        "incident": _word(
            "what happened: CRASHED, RESENT, LEFT, ...; MISSED (a start of an open "
            "system) has no client"
        ),
        "messages": _int32("that it is about; 1 where it is about none", "messages"),
    },
    # of recorded timelines, and of runs whose world asks, one row per worker of a row
    # of `timeline.Rows`:
    "rows": {
        "run": _RUN,
        "row": _int64("row of the timeline, from 0"),
        "place": _int32("of the worker in the row, from 0"),
        "time": _time("of the row"),
        "kind": _word("COMMIT, CONTRIBUTE, REFRESH, AVERAGE, ..."),
        "node": _int32(
            "worker whose version advances, from 1; null if the server's", numbered=True
        ),
        "worker": _int32("worker that takes part, from 1; or null", numbered=True),
        "job": _int32(
            "which of its jobs; missing (in files, as in the next three, 2**31 - 1) "
            "where no worker takes part",
            none=NO_WORKER,
        ),
        "version": _int64("commits before the row", "commits"),
        "read_version": _int64(
            "version that the worker read, or missing", "commits", none=NO_SLOT
        ),
        "read_slot": _int32(
            "register that holds what it read, or missing", none=NO_SLOT
        ),
        "write_slot": _int32(
            "register of the new version; missing if no job reads it", none=NO_SLOT
        ),
        "peer": _int32("gossip partner, from 1; else null", numbered=True),
        "round": _int32("of round-based protocols, else 0"),
    },
}

FURTHER = {"evaluations": "float64", "workers": "float64", "labels": "float64"}
"""Types of columns that are not listed: metrics of plug-ins. Of other tables such a
column is a diagnostic of an algorithm, and float32."""
ORDERS = {
    "commits": ["run", "commit"],
    "rows": ["run", "row", "place"],
    "labels": ["run", "time", "label"],
}
"""Sort keys of the tables that are not sorted by run, time, client and job."""
LEFT_OUT = (
    *("rows", "commits", "jobs", "incidents"),
    *(name for extra in extras().values() for name in extra.growing),
)
"""Tables that `record: summary` leaves out."""


def _add(name: str, columns: Mapping[str, tuple[str, str, str]]) -> None:
    """Adds columns to a table, or a table that an extra alone has."""
    if name not in COLUMNS:
        COLUMNS[name] = {"run": _RUN}
        ORDERS[name] = ["run", next(iter(columns))]
    COLUMNS[name] |= {key: TraceColumn(*of) for key, of in columns.items()}


for _extra in extras().values():
    for _name, _columns in _extra.tables.items():
        _add(_name, _columns)
