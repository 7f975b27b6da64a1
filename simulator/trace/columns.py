"""What a column of the trace is called, holds and means: the one place that says so."""

from typing import NamedTuple

from simulator import metrics


class Column(NamedTuple):
    """One column of a table: its type, its unit (`""` if none) and its meaning.

    Numbers of clients, parties and workers are `numbered`: `numbering` says how.
    """

    dtype: str
    unit: str
    meaning: str
    numbered: bool = False


_RUN = Column("int32", "", "run of the study; `runs` of the manifest says which")
_CLIENT = Column("int32", "", "client, party or worker, from 1", numbered=True)

COLUMNS: dict[str, dict[str, Column]] = {
    "commits": {
        "run": _RUN,
        "commit": Column("int64", "commits", "version that the row made, from 1"),
        "time": Column("float64", "virtual s", "when it was made"),
        "kind": Column(
            "string", "", "COMMIT, or REFRESH or CONTRIBUTE, which make no version, ..."
        ),
        "round": Column("int32", "", "round of round-based protocols, else 0"),
        "num_contributions": Column("int32", "", "contributions applied"),
        "client": Column(
            "int32",
            "",
            "from 1: who contributed, where it is one alone; who asked for a REFRESH; "
            "who began an AVERAGE; else null",
            numbered=True,
        ),
        "staleness_mean": Column(
            "float32",
            "commits",
            "mean over contributors of commits since their read; in gossip by "
            "rounds, those of its own round do not count",
        ),
        "staleness_max": Column("int32", "commits", "the largest of them"),
        # every further column is a diagnostic of the algorithm:
        "loss": Column("float32", "nats", "loss of the contributions' own batches"),
        "gradient_norm": Column(
            "float32", "", "Euclidean norm of the applied gradient"
        ),
        "step_size": Column("float32", "", "step size of the clients"),
        "step_bound": Column(
            "float32", "", "largest step that FedBCD's Theorem 2 allows; NaN if unknown"
        ),
        "moved_norm": Column(
            "float32", "", "FedBCD: norm of what the parties' local steps moved"
        ),
        "embedding_staleness_mean": Column(
            "float32",
            "commits",
            "vertical: mean age of the other parties' embeddings used (VAFL eq. 3)",
        ),
        "embedding_staleness_max": Column("float32", "commits", "the largest of them"),
        "noise_std": Column("float32", "", "standard deviation of the upload's noise"),
        "clipped_fraction": Column(
            "float32", "fraction", "of the batch's samples, or 0 or 1 for its mean"
        ),
        "noise_norm": Column("float32", "", "Euclidean norm of the gradient's noise"),
        "stage": Column("float32", "", "of MAPA's server, from 1"),
        "sensitivity": Column(
            "float32",
            "",
            "of the uploaded embedding to one input (VAFL, appendix F), or of the "
            "server's stage (MAPA)",
        ),
    },
    "probes": {
        "run": _RUN,
        "commit": Column("int64", "commits", "version that the row made, from 1"),
        "time": Column("float64", "virtual s", "when it was made"),
        "client": _CLIENT,
        "job": Column("int32", "", "which of the client's jobs"),
        "samples": Column(
            "list of int32", "", "training rows of its batch, 2**31 - 1 for padding"
        ),
        "message": Column("list of float32", "", "what the server received, flat"),
        "gradient": Column(
            "list of float32", "", "the gradient in it, before clipping and noise"
        ),
        "state": Column("list of float32", "", "weights that it was taken at, flat"),
    },
    "jobs": {
        "run": _RUN,
        "client": _CLIENT,
        "job": Column("int32", "", "number of the job of that client, from 0"),
        "kind": Column(
            "string", "", "work (a contribution) or refresh (bounded delay)"
        ),
        "read_time": Column("float64", "virtual s", "when the client read the state"),
        "begun_time": Column("float64", "virtual s", "when it began to compute"),
        "computed_time": Column("float64", "virtual s", "when it had computed"),
        "sent_time": Column("float64", "virtual s", "when its upload began"),
        "arrived_time": Column("float64", "virtual s", "when its upload had arrived"),
        "applied_time": Column("float64", "virtual s", "when it was applied; else NaN"),
        "read_version": Column("int64", "commits", "version that it read"),
        "commit": Column(
            "int64", "commits", "version that it is part of, or `timeline.NO_COMMIT`"
        ),
        "upload_bytes": Column("int64", "bytes", "sent to the server"),
        "download_bytes": Column("int64", "bytes", "sent to the client"),
        "upload_messages": Column(
            "int32", "messages", "sent to the server, repeats included"
        ),
        "download_messages": Column("int32", "messages", "sent to the client"),
        "outcome": Column("string", "", "APPLIED, IN_FLIGHT, LOST, ..."),
    },
    "evaluations": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "when the model was evaluated"),
        "commits": Column("int64", "commits", "made so far"),
        "contributions": Column("int64", "", "applied so far"),
        "epochs": Column("float64", "epochs", "passes over the data so far"),
        "upload_bytes": Column("int64", "bytes", "arrived at the server so far"),
        "download_bytes": Column("int64", "bytes", "sent to clients so far"),
        "rounds": Column("float64", "rounds", "completed so far, where there are any"),
        "messages": Column("int64", "messages", "sent so far that carry anything"),
        # every further column is a metric:
        **{m.name: Column("float64", m.unit, m.meaning) for m in metrics.own()},
    },
    "workers": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "of the evaluation"),
        "commits": Column("int64", "commits", "made so far"),
        "client": _CLIENT,
        # every further column is a metric of its own model:
        **{
            m.name: Column("float64", m.unit, "of its own model, test rows")
            for m in metrics.own()
            if m.models is metrics.Models.EACH_WORKER
        },
    },
    "clients": {
        "run": _RUN,
        "client": _CLIENT,
        "client_group": Column(
            "string", "", "name of its group in the scenario, where it has groups"
        ),
        "client_label": Column(
            "string", "", "what the log calls it, where that is no number in order"
        ),
        "num_jobs": Column("int64", "", "jobs begun, refreshes among them"),
        "num_applied": Column("int64", "", "contributions applied"),
        "staleness_mean": Column(
            "float64",
            "commits",
            "of all its contributions of the run, those of its start among them",
        ),
        "staleness_max": Column("int64", "commits", "the largest of them"),
        # not of recorded timelines:
        "num_features": Column("int32", "", "columns that it holds"),
        "num_samples": Column("int32", "", "rows that it holds"),
        "embedding_staleness_mean": Column(
            "float64", "commits", "age of its embeddings when others used them"
        ),
        "embedding_staleness_max": Column("float64", "commits", "the largest of them"),
        "releases": Column(
            "int64", "messages", "messages sent that depend on its data"
        ),
    },
    "staleness": {
        "run": _RUN,
        "client": _CLIENT,
        "quantity": Column("string", "", "contribution or embedding"),
        "start": Column(
            "bool",
            "",
            "whether it was before every client had had a contribution applied: the "
            "start of the run, which no steady state is to be compared with",
        ),
        "low": Column("int64", "commits", "smallest staleness of the bin"),
        "high": Column("int64", "commits", "one above the largest of the bin"),
        "count": Column("int64", "", "occurrences"),
    },
    "privacy": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "of the evaluation"),
        "client": _CLIENT,
        "releases": Column(
            "int64",
            "messages",
            "sent so far, applied or not; in the last rows until the run ended",
        ),
        "mu": Column(
            "float64", "", "Gaussian differential privacy level so far (VAFL), or null"
        ),
        "epsilon": Column(
            "float64", "", "of the client's own messages so far, with delta; or null"
        ),
        "delta": Column("float64", "", "that epsilon holds with, or null"),
        "accountant": Column("string", "", "who says so"),
        "formal": Column("bool", "", "a proved guarantee, or a paper's own accounting"),
    },
    "incidents": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "when it happened"),
        "client": _CLIENT,
        "incident": Column("string", "", "what happened: CRASHED, RESENT, LEFT, ..."),
        "messages": Column(
            "int32", "messages", "that it is about; 1 where it is about none"
        ),
    },
    # of recorded timelines alone, one row per worker of a row of `timeline.Rows`:
    "rows": {
        "run": _RUN,
        "row": Column("int64", "", "row of the timeline, from 0"),
        "place": Column("int32", "", "of the worker in the row, from 0"),
        "time": Column("float64", "virtual s", "of the row"),
        "kind": Column("string", "", "COMMIT, CONTRIBUTE, REFRESH, AVERAGE, ..."),
        "node": Column(
            "int32",
            "",
            "worker whose version advances, from 1; null if the server's",
            numbered=True,
        ),
        "worker": Column(
            "int32", "", "who takes part, from 1; null if nobody", numbered=True
        ),
        "job": Column("int32", "", "which of its jobs"),
        "version": Column("int64", "commits", "commits before the row"),
        "read_version": Column("int64", "commits", "version that the worker read"),
        "read_slot": Column("int32", "", "register that holds what it read"),
        "write_slot": Column(
            "int32", "", "register of the new version, or `timeline.NO_SLOT`"
        ),
        "peer": Column("int32", "", "gossip partner, from 1; else null", numbered=True),
        "round": Column("int32", "", "of round-based protocols, else 0"),
    },
}

FURTHER = {"evaluations": "float64", "workers": "float64"}
"""Types of columns that are not listed: metrics of plug-ins. Of other tables such a
column is a diagnostic of an algorithm, and float32."""
ORDERS = {"commits": ["run", "commit"], "rows": ["run", "row", "place"]}
"""By what tables are sorted that are not sorted by run, time, client and job."""
