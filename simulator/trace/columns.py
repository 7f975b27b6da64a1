"""Names, types, units and meanings of the trace's columns: the one place for them."""

from typing import NamedTuple

from .. import metrics
from ..config.attached import ExtraTable, tables
from ..timeline import NO_COMMIT, NO_SLOT, NO_WORKER


class TraceColumn(NamedTuple):
    """One column of a table: its type, its unit (`""` if none) and its meaning.

    Numbers of clients, parties and workers are `numbered`: `numbering` says how. A
    column may have a number that stands for none in its files, `none`.
    """

    dtype: str
    unit: str
    meaning: str
    numbered: bool = False
    none: int | None = None


_RUN = TraceColumn("int32", "", "run of the study; `runs` of the manifest says which")
_CLIENT = TraceColumn("int32", "", "client, party or worker, from 1", numbered=True)

COLUMNS: dict[str, dict[str, TraceColumn]] = {
    "commits": {
        "run": _RUN,
        "commit": TraceColumn("int64", "commits", "version that the row made, from 1"),
        "time": TraceColumn("float64", "virtual s", "when it was made"),
        "kind": TraceColumn(
            "string", "", "COMMIT, or REFRESH or CONTRIBUTE, which make no version, ..."
        ),
        "round": TraceColumn("int32", "", "round of round-based protocols, else 0"),
        "num_contributions": TraceColumn(
            "int32",
            "",
            "of a COMMIT: all that it applies, those that had gathered among them; a "
            "CONTRIBUTE is one of these, so that sums are over one kind",
        ),
        "client": TraceColumn(
            "int32",
            "",
            "from 1: who contributed with this row, where it is one alone; who asked "
            "for a REFRESH; "
            "who began an AVERAGE; who sent (SEND) or got (MERGE) a model; else null",
            numbered=True,
        ),
        "staleness_mean": TraceColumn(
            "float32",
            "commits",
            "mean over these contributions of commits since their read; in gossip by "
            "rounds, those of its own round do not count",
        ),
        "staleness_max": TraceColumn("int32", "commits", "the largest of them"),
        # every further column is a diagnostic of the algorithm:
        "loss": TraceColumn(
            "float32", metrics.OF_LOSS, "loss of the contributions' own batches"
        ),
        "gradient_norm": TraceColumn(
            "float32", "", "Euclidean norm of the applied gradient"
        ),
        "step_size": TraceColumn("float32", "", "step size of the clients"),
        "step_bound": TraceColumn(
            "float32", "", "largest step that FedBCD's Theorem 2 allows; NaN if unknown"
        ),
        "moved_norm": TraceColumn(
            "float32", "", "FedBCD: norm of what the parties' local steps moved"
        ),
        "embedding_staleness_mean": TraceColumn(
            "float32",
            "commits",
            "vertical: mean age of the other parties' embeddings used (VAFL eq. 3)",
        ),
        "embedding_staleness_max": TraceColumn(
            "float32", "commits", "the largest of them"
        ),
        "noise_std": TraceColumn(
            "float32", "", "standard deviation of the upload's noise"
        ),
        "clipped_fraction": TraceColumn(
            "float32", "fraction", "of the batch's samples, or 0 or 1 for its mean"
        ),
        "noise_norm": TraceColumn(
            "float32", "", "Euclidean norm of the gradient's noise"
        ),
        "stage": TraceColumn("float32", "", "of MAPA's server, from 1"),
        "effective_contributions": TraceColumn(
            "float32",
            "",
            "of a COMMIT: (sum of weights)^2 / sum of squares of its contributions",
        ),
        "contribution_cosine": TraceColumn(
            "float32",
            "",
            "of this row's weighted sum of contributions and the last one before it",
        ),
        "sensitivity": TraceColumn(
            "float32",
            "",
            "of the uploaded embedding to one input (VAFL, appendix F), or of the "
            "server's stage (MAPA)",
        ),
    },
    "probes": {
        "run": _RUN,
        "commit": TraceColumn("int64", "commits", "version that the row made, from 1"),
        "time": TraceColumn("float64", "virtual s", "when it was made"),
        "client": _CLIENT,
        "job": TraceColumn("int32", "", "which of the client's jobs"),
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
        "job": TraceColumn("int32", "", "number of the job of that client, from 0"),
        "kind": TraceColumn(
            "string", "", "work (a contribution) or refresh (bounded delay)"
        ),
        "read_time": TraceColumn(
            "float64", "virtual s", "when the client read the state"
        ),
        "begun_time": TraceColumn("float64", "virtual s", "when it began to compute"),
        "computed_time": TraceColumn("float64", "virtual s", "when it had computed"),
        "sent_time": TraceColumn("float64", "virtual s", "when its upload began"),
        "arrived_time": TraceColumn(
            "float64", "virtual s", "when its upload had arrived"
        ),
        "applied_time": TraceColumn(
            "float64", "virtual s", "when it was applied; else NaN"
        ),
        "read_version": TraceColumn("int64", "commits", "version that it read"),
        "commit": TraceColumn(
            "int64",
            "commits",
            "version that it is part of; missing (in files 2**63 - 1) if not applied",
            none=NO_COMMIT,
        ),
        "upload_bytes": TraceColumn(
            "int64", "bytes", "sent to the server, whatever becomes of the job"
        ),
        "download_bytes": TraceColumn(
            "int64", "bytes", "received by the client, whatever becomes of the job"
        ),
        "upload_messages": TraceColumn(
            "int32", "messages", "sent to the server, repeats included"
        ),
        "download_messages": TraceColumn("int32", "messages", "received by the client"),
        "outcome": TraceColumn("string", "", "APPLIED, IN_FLIGHT, LOST, ..."),
        "local_steps": TraceColumn(
            "int32", "steps", "its own; where they change alone"
        ),
    },
    "evaluations": {
        "run": _RUN,
        "time": TraceColumn("float64", "virtual s", "when the model was evaluated"),
        "commits": TraceColumn("int64", "commits", "made so far"),
        "contributions": TraceColumn(
            "int64", "", "that the server took so far; a buffer not yet full is counted"
        ),
        "epochs": TraceColumn("float64", "epochs", "passes over the data so far"),
        "upload_bytes": TraceColumn(
            "int64",
            "bytes",
            "of the contributions so far, and of further uploads; `jobs` has those of "
            "discarded, lost and waiting work",
        ),
        "download_bytes": TraceColumn("int64", "bytes", "of the contributions so far"),
        "rounds": TraceColumn(
            "float64", "rounds", "completed so far, where there are any"
        ),
        "messages": TraceColumn("int64", "messages", "of those bytes, up and down"),
        # every further column is a metric:
        **{m.name: TraceColumn("float64", m.unit, m.meaning) for m in metrics.own()},
    },
    "workers": {
        "run": _RUN,
        "time": TraceColumn("float64", "virtual s", "of the evaluation"),
        "commits": TraceColumn("int64", "commits", "made so far"),
        "client": _CLIENT,
        # every further column is a metric of its own model:
        **{
            m.name: TraceColumn("float64", m.unit, "of its own model, test rows")
            for m in metrics.own()
            if m.models is metrics.Models.EACH_WORKER
        },
        # or of the server's model:
        **{
            m.name: TraceColumn("float64", m.unit, "test rows, for its mix of labels")
            for m in metrics.own()
            if m.each is metrics.Each.CLIENT
        },
    },
    "labels": {
        "run": _RUN,
        "time": TraceColumn("float64", "virtual s", "of the evaluation"),
        "commits": TraceColumn("int64", "commits", "made so far"),
        "label": TraceColumn("int32", "", "class of the test rows, from 0"),
        **{
            m.name: TraceColumn("float64", m.unit, "of its test rows; NaN of none")
            for m in metrics.own()
            if m.each is metrics.Each.LABEL
        },
    },
    "clients": {
        "run": _RUN,
        "client": _CLIENT,
        "client_group": TraceColumn(
            "string", "", "name of its group in the scenario, where it has groups"
        ),
        "client_label": TraceColumn(
            "string",
            "",
            "what the log calls it, where that is no number in order, or the data",
        ),
        "role": TraceColumn(
            "string",
            "",
            "what the algorithm makes of it, if anything",
        ),
        "num_jobs": TraceColumn("int64", "", "jobs started, refreshes among them"),
        "num_applied": TraceColumn("int64", "", "contributions applied"),
        "staleness_mean": TraceColumn(
            "float64",
            "commits",
            "of all its contributions of the run, those of its start among them",
        ),
        "staleness_max": TraceColumn("int64", "commits", "the largest of them"),
        # not of recorded timelines:
        "num_features": TraceColumn("int32", "", "columns that it holds"),
        "num_samples": TraceColumn("int32", "", "rows that it holds"),
        # where a partition has a `pairing`:
        "compute_median_s": TraceColumn(
            "float64", "virtual s", "median of its law of computing"
        ),
        "paired_by": TraceColumn(
            "float64", "", "measure of its share, by which it was paired with that"
        ),
        "embedding_staleness_mean": TraceColumn(
            "float64", "commits", "age of its embeddings when others used them"
        ),
        "embedding_staleness_max": TraceColumn(
            "float64", "commits", "the largest of them"
        ),
        "releases": TraceColumn(
            "int64", "messages", "messages sent that depend on its data"
        ),
        # of summaries alone; after the start of the run, as `start_s` has it:
        "steady_contributions": TraceColumn(
            "int64", "", "contributions applied after the start"
        ),
        "steady_staleness_mean": TraceColumn("float64", "commits", "of those"),
        "steady_waiting_mean": TraceColumn(
            "float64", "virtual s", "from arrival to application of those"
        ),
        "steady_queued_mean": TraceColumn(
            "float64", "virtual s", "from read to the beginning of computing of those"
        ),
        "utilisation": TraceColumn(
            "float64",
            "fraction",
            "of the time after the start, in which it computed",
        ),
        "uploads": TraceColumn("int64", "messages", "sent, repeats included"),
        "incidents": TraceColumn("int64", "", "in the whole run"),
    },
    # of summaries of timelines alone:
    "ages": {
        "run": _RUN,
        "client_group": TraceColumn(
            "string", "", "name of the clients' group, where the scenario has groups"
        ),
        "start": TraceColumn(
            "bool", "", "whether it was until `start_s`, the end of the run's start"
        ),
        "staleness": TraceColumn("int64", "commits", "of contributions"),
        "count": TraceColumn("int64", "", "contributions of that staleness"),
    },
    "staleness": {
        "run": _RUN,
        "client": _CLIENT,
        "quantity": TraceColumn("string", "", "contribution or embedding"),
        "start": TraceColumn(
            "bool",
            "",
            "whether it was before every client had had a contribution applied: the "
            "start of the run, which no steady state is to be compared with",
        ),
        "low": TraceColumn("int64", "commits", "smallest staleness of the bin"),
        "high": TraceColumn("int64", "commits", "one above the largest of the bin"),
        "count": TraceColumn("int64", "", "occurrences"),
    },
    "privacy": {
        "run": _RUN,
        "time": TraceColumn("float64", "virtual s", "of the evaluation"),
        "client": _CLIENT,
        "releases": TraceColumn(
            "int64",
            "messages",
            "sent so far, applied or not; in the last rows until the run ended; where "
            "the noise is the server's, the sum over commits of the square of the "
            "client's messages in each",
        ),
        "mu": TraceColumn(
            "float64", "", "Gaussian differential privacy level so far (VAFL), or null"
        ),
        "epsilon": TraceColumn(
            "float64", "", "of the client's own messages so far, with delta; or null"
        ),
        "delta": TraceColumn("float64", "", "that epsilon holds with, or null"),
        "accountant": TraceColumn("string", "", "who says so"),
        "formal": TraceColumn(
            "bool", "", "a proved guarantee, or a paper's own accounting"
        ),
        "protects": TraceColumn(
            "string",
            "",
            "what differs between the data sets that epsilon or mu is of: one sample "
            "of one client, or one client's whole contribution, replaced; or one "
            "client with all that it sends, zeroed",
        ),
    },
    "incidents": {
        "run": _RUN,
        "time": TraceColumn("float64", "virtual s", "when it happened"),
        "client": _CLIENT,
        "incident": TraceColumn(
            "string",
            "",
            "what happened: CRASHED, RESENT, LEFT, ...; MISSED (a start of an open "
            "system) has no client",
        ),
        "messages": TraceColumn(
            "int32", "messages", "that it is about; 1 where it is about none"
        ),
    },
    # of recorded timelines, and of runs whose world asks, one row per worker of a row
    # of `timeline.Rows`:
    "rows": {
        "run": _RUN,
        "row": TraceColumn("int64", "", "row of the timeline, from 0"),
        "place": TraceColumn("int32", "", "of the worker in the row, from 0"),
        "time": TraceColumn("float64", "virtual s", "of the row"),
        "kind": TraceColumn("string", "", "COMMIT, CONTRIBUTE, REFRESH, AVERAGE, ..."),
        "node": TraceColumn(
            "int32",
            "",
            "worker whose version advances, from 1; null if the server's",
            numbered=True,
        ),
        "worker": TraceColumn(
            "int32", "", "worker that takes part, from 1; or null", numbered=True
        ),
        "job": TraceColumn(
            "int32",
            "",
            "which of its jobs; missing (in files, as in the next three, 2**31 - 1) "
            "where no worker takes part",
            none=NO_WORKER,
        ),
        "version": TraceColumn("int64", "commits", "commits before the row"),
        "read_version": TraceColumn(
            "int64", "commits", "version that the worker read, or missing", none=NO_SLOT
        ),
        "read_slot": TraceColumn(
            "int32", "", "register that holds what it read, or missing", none=NO_SLOT
        ),
        "write_slot": TraceColumn(
            "int32",
            "",
            "register of the new version; missing if no job reads it",
            none=NO_SLOT,
        ),
        "peer": TraceColumn(
            "int32", "", "gossip partner, from 1; else null", numbered=True
        ),
        "round": TraceColumn("int32", "", "of round-based protocols, else 0"),
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
    *(name for name, table in tables() if table.grows),
)
"""Tables that `record: summary` leaves out."""


def _add(name: str, table: ExtraTable) -> None:
    """Adds columns to a table, or a table that an extra alone has."""
    mine = {key: TraceColumn(*of) for key, of in table.columns.items()}
    if name not in COLUMNS:
        COLUMNS[name] = {"run": _RUN}
        ORDERS[name] = ["run", next(iter(mine))]
    COLUMNS[name] |= mine


for _name, _table in tables():
    _add(_name, _table)
