"""VAFL, once more: slow, plain NumPy, written from the paper.

A second implementation, made without sight of the first, so that agreement of the two
is evidence. Everything is float64 and most of it is loops over parties and samples.

The models. Party m embeds sample n, by default linearly, `h[n, m] = x[n, m] @
theta[m]`, plus the noise Z of eq. (10) in the private variant; networks have noise
inside each layer, which enters their Jacobian by the draw of the upload (V-17). The
server model theta_0 is by default one bias (V-13): the head adds everything up,
`scores[n] = sum_m h[n, m] + bias`, and the loss is softmax or sigmoid cross-entropy.

One commit of the upload-first order (sections 2 and 3 of the specification):

1. every contributor uploads its batch, or all samples (V-05), at its present theta;
   the server stores all the uploads before it computes any gradient;
2. server gradient: mean over the contributors, each on its own batch, at bias^k;
3. every contributor asks for its own batch. The answer is taken at bias^k
   (`server_gradient="before"`, eqs 2a and 2b) or at bias^{k+1} ("after", the letter
   of Algorithm 1, which updates on the upload and answers afterwards) (V-08);
4. `theta_m -= step_size(k) * (x.T @ answer + l2 * theta_m)` for the contributors, the
   regulariser once per client update whatever the reduction (V-12), at theta_m^k.

One commit of the query-first order (V-06):

1. every contributor asks for the batch that it uploaded at its previous activation.
   All the questions are answered from the table as it is before this commit's
   uploads; own entries are its own last upload, which is no staler than its theta,
   for theta_m has not moved since. A party without an earlier activation asks for
   the new batch: its initial upload (V-09) contained that;
2. it updates theta_m as above, then uploads the new batch, or all samples, with the
   new theta_m. The contributors' uploads are stored together;
3. server gradient: mean over the contributors on their new batches, at bias^k.

Here "before" and "after" give the same numbers, by causality: the server gradient
needs the upload, which needs the new theta_m, which needs the answer, so no answer
can be taken at bias^{k+1}. What "after" asks for, an answer that comes later than the
server's update by the upload asked about, holds already: that update was made at the
party's previous activation and bias^k contains it.

The synchronous baseline (`coordinated`, section 4) has neither order nor table. All
parties embed `batches[0]` afresh, whatever `parties` says, with noise keyed by
`jobs[0]`, and all blocks update. All gradients are taken at bias^k whatever
`server_gradient` says: section 4 calls it plain mini-batch SGD apart from the clock,
and V-08 is about Algorithm 1. The table keeps the initial upload and its ages grow.

Ages follow eq. (3). An upload sets its entries to 0 for the rest of the iteration
(V-07), and the end of the iteration adds 1 to all entries: 1 for those of this
iteration, one more than before for the others. Initially all are 1 (V-09).

Source: Chen, Jin, Sun and Yin, VAFL: a Method of Vertical Asynchronous Federated
Learning, algorithms 1 and 2, eqs (2) to (4), (10), appendix D. V-05 and the like are
entries of the list of ambiguities.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.reference.layers_twin import Model

INITIAL_JOB = -1
"""The job number under which the initial upload asks for its noise."""


class Commit(NamedTuple):
    """Contributions that are applied together; a new version.

    Attributes:
        parties: distinct, from 0; one for async, t for t-sync, all for sync.
        jobs: number of each party's job, the key of its upload's noise. In a
            coordinated run, the first is the key of every party.
        batches: sample ids of each party's own batch, perhaps with repeats. In the
            query-first order, the batch newly selected at this activation.
    """

    parties: tuple[int, ...]
    jobs: tuple[int, ...]
    batches: tuple[np.ndarray, ...]


class Refresh(NamedTuple):
    """Bounded delay (V-10): overdue embeddings are uploaded again; no new version.

    Entries of `batch` whose age exceeds `bound` are embedded at the party's present
    theta. Where uploads are of all samples, a party with at least one such entry
    uploads all of them; a party with none uploads nothing.
    """

    parties: tuple[int, ...]
    jobs: tuple[int, ...]
    batch: np.ndarray
    bound: int


class Options(NamedTuple):
    """The variant; see the module's docstring for what each value means.

    Attributes:
        upload: "batch" or "all" (V-05); "current" is "all" by every party, before each
            commit.
        client_order: "upload_first" or "query_first" (V-06); without effect on a
            coordinated run.
        server_gradient: "before" or "after" (V-08); without effect on a coordinated
            run.
        coordinated: True for the synchronous baseline.
        loss: "softmax", or "sigmoid" with one output and labels 0 and 1.
        reduction: "mean" or "sum" over the batch (V-11).
        l2: the regulariser is l2 / 2 * |theta_m|^2, the bias has none (V-12).
        step_size: of the clients in commit k = 0, 1, ...; refreshes do not count.
        server_step_size: of the server in commit k.
    """

    upload: str
    client_order: str
    server_gradient: str
    coordinated: bool
    loss: str
    reduction: str
    l2: float
    step_size: Callable[[int], float]
    server_step_size: Callable[[int], float]


class Trace(NamedTuple):
    """What a run leaves: its end, and one list entry per Commit row.

    Attributes:
        theta: client models at the end, per party [p_m, num_outputs], or flat.
        bias: server model at the end, [num_outputs], or flat.
        table: stored embeddings at the end, [N, M, num_outputs].
        stamps: iteration k at which each was stored, -1 for the initial upload, [N, M].
        table_ages: tau at the end, `num_commits - stamps`, [N, M].
        loss: mean over the contributors of the reduced loss of the batch asked about,
            without regulariser, at the bias at which the client gradient is taken. Of
            a coordinated run, the loss of the common batch.
        ages: per contributor [B, M], tau of the embeddings that its client gradient is
            computed from. A coordinated run has M contributors and zeros.
        gradient_norm: Euclidean norm of the server gradient and all contributing
            client gradients, regulariser included, as one vector.
    """

    theta: list[np.ndarray]
    bias: np.ndarray
    table: np.ndarray
    stamps: np.ndarray
    table_ages: np.ndarray
    loss: list[float]
    ages: list[list[np.ndarray]]
    gradient_norm: list[float]


Noise = Callable[[int, int, int], Any]


class LinearParty:
    """x @ theta, and the noise on it; theta is [p_m, num_outputs]."""

    def embed(self, theta: np.ndarray, x: np.ndarray, noise: Any) -> np.ndarray:
        return x @ theta + (0.0 if noise is None else noise)

    def pull(
        self, theta: np.ndarray, x: np.ndarray, noise: Any, to_h: np.ndarray
    ) -> np.ndarray:
        return np.outer(x, to_h)


class NetworkParty(NamedTuple):
    """A model of each of the party's views; its embedding is [views, width]."""

    model: Model
    views: int

    def embed(self, theta: np.ndarray, x: np.ndarray, noise: Any) -> np.ndarray:
        return self.model.forward(theta, x.reshape(self.views, -1), noise)

    def pull(
        self, theta: np.ndarray, x: np.ndarray, noise: Any, to_h: np.ndarray
    ) -> np.ndarray:
        return self.model.vjp(theta, x.reshape(self.views, -1), to_h, noise)[0]


class SumServer(NamedTuple):
    """The sum of all embeddings and one bias, into the loss."""

    loss: str

    def head(
        self, bias: np.ndarray, h: np.ndarray, label: int
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss of a sample; its derivatives by h and by the bias."""
        scores = h.sum(axis=0) + bias
        slope = example_gradient(scores, label, self.loss)
        return (
            example_loss(scores, label, self.loss),
            np.tile(slope, (len(h), 1)),
            slope,
        )


class NetworkServer(NamedTuple):
    """A network over all vectors h, into softmax.

    Attributes:
        model: the network.
        combine: "concat" lays vectors end to end; "sum" adds them up;
            "weighted_sum" with factors, which come first in the weights.
    """

    model: Model
    combine: str

    def head(
        self, weights: np.ndarray, h: np.ndarray, label: int
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss of a sample; its derivatives by h and by the weights."""
        vectors = h.reshape(-1, h.shape[-1])
        mixing = np.ones(len(vectors))
        num_factors = len(vectors) if self.combine == "weighted_sum" else 0
        factors, own = weights[:num_factors], weights[num_factors:]
        if num_factors:
            mixing = factors
        s = vectors.ravel() if self.combine == "concat" else mixing @ vectors
        logits = self.model.forward(own, s[None])[0]
        slope = example_gradient(logits, label, "softmax")
        gradient, (to_s,) = self.model.vjp(own, s[None], slope[None])
        to_h = to_s if self.combine == "concat" else np.outer(mixing, to_s)
        to_factors = (vectors @ to_s) if num_factors else np.zeros(0)
        loss = example_loss(logits, label, "softmax")
        return loss, to_h.reshape(h.shape), np.concatenate([to_factors, gradient])


def run(
    features: list[np.ndarray],
    labels: np.ndarray,
    num_outputs: int,
    rows: list[Commit | Refresh],
    options: Options,
    noise: Noise | None = None,
    theta: list[np.ndarray] | None = None,
    bias: np.ndarray | None = None,
    party: Any = None,
    server: Any = None,
) -> Trace:
    """Applies the rows in their order, beginning with a full upload (V-09).

    Args:
        features: per party [N, p_m]; widths may differ.
        labels: [N], classes from 0.
        num_outputs: width of embedding, bias and scores; 1 for sigmoid.
        rows: what happens, in order; a Refresh belongs to the iteration of the next
            Commit.
        options: the variant.
        noise: (party, job, sample) to the draw added to that upload's embedding,
            [num_outputs], or one for each layer. A pure function: it may be asked
            twice for the same key.
        theta: initial client models, per party [p_m, num_outputs]; zeros if None.
        bias: initial server model, [num_outputs]; zeros if None.
        party: `LinearParty`, or models of the parties' networks.
        server: `SumServer`, or a network.

    Returns:
        The trace.
    """
    if theta is None:
        theta = [np.zeros((block.shape[1], num_outputs)) for block in features]
    simulation = Simulation(
        [np.array(block, dtype=np.float64) for block in features],
        np.array(labels).astype(int),
        options,
        noise,
        [np.array(block, dtype=np.float64) for block in theta],
        np.zeros(num_outputs) if bias is None else np.array(bias, dtype=np.float64),
        party or [LinearParty()] * len(features),
        server or SumServer(options.loss),
    )
    for row in rows:
        if isinstance(row, Refresh):
            simulation.refresh(row)
        else:
            simulation.commit(row)
    return simulation.trace()


class Question(NamedTuple):
    """One party's question: a batch and the embeddings the answer is based on.

    `job` is that of the upload, whose noise the client's Jacobian has.
    """

    party: int
    job: int
    batch: np.ndarray
    embeddings: np.ndarray  # [B, M, ...]
    ages: np.ndarray  # [B, M]


class Simulation:
    """The state of server and parties, and the rows as methods on it."""

    def __init__(
        self,
        features: list[np.ndarray],
        labels: np.ndarray,
        options: Options,
        noise: Noise | None,
        theta: list[np.ndarray],
        bias: np.ndarray,
        parties: list[Any],
        server: Any,
    ) -> None:
        self.features, self.labels, self.options = features, labels, options
        self.noise, self.theta, self.bias = noise, theta, bias
        self.parties, self.server = parties, server
        self.everyone, self.all_samples = range(len(features)), range(len(labels))
        self.table = self.fresh(self.all_samples, INITIAL_JOB)
        self.ages = np.ones(self.table.shape[:2], dtype=int)
        self.num_commits = 0
        self.last_batch: dict[int, np.ndarray] = {}  # for the query-first order
        self.losses: list[float] = []
        self.ages_used: list[list[np.ndarray]] = []
        self.gradient_norms: list[float] = []

    # What a party does.

    def draw(self, party: int, job: int, sample: int) -> Any:
        return None if self.noise is None else self.noise(party, job, sample)

    def embed(self, party: int, job: int, sample: int) -> np.ndarray:
        """h at the party's present theta, with noise inside an identity (eq. 10)."""
        x, noise = self.features[party][sample], self.draw(party, job, sample)
        return self.parties[party].embed(self.theta[party], x, noise)

    def fresh(self, samples: Sequence[int], job: int) -> np.ndarray:
        """h of all parties, [B, M, ...]."""
        rows = [[self.embed(m, job, n) for m in self.everyone] for n in samples]
        return np.array(rows)

    def client_gradient(self, question: Question, bias: np.ndarray) -> np.ndarray:
        """Eq. (2b) plus the regulariser: Jacobian times answer."""
        m, theta = question.party, self.theta[question.party]
        gradient = self.options.l2 * theta
        for n, (_, to_h, _) in zip(
            question.batch, self.heads(question, bias), strict=True
        ):
            noise = self.draw(m, question.job, n)
            answer = self.weight(question.batch) * to_h[m]
            gradient = gradient + self.parties[m].pull(
                theta, self.features[m][n], noise, answer
            )
        return gradient

    # What the server does.

    def upload(self, party: int, job: int, samples: Sequence[int]) -> None:
        """Party embeds, server stores; fresh until the iteration ends (V-07)."""
        for sample in samples:
            self.table[sample, party] = self.embed(party, job, sample)
            self.ages[sample, party] = 0

    def upload_commit(self, row: Commit) -> None:
        """The uploads of all contributors, before anything else reads the table."""
        if self.options.upload == "current":
            for party in self.everyone:
                self.upload(party, INITIAL_JOB, self.all_samples)
        for party, job, batch in zip(row.parties, row.jobs, row.batches, strict=True):
            every = self.options.upload != "batch"
            self.upload(party, job, self.all_samples if every else batch)

    def ask(self, party: int, job: int, batch: np.ndarray) -> Question:
        """What the table holds now for a batch."""
        table, ages = self.table[batch].copy(), self.ages[batch].copy()
        return Question(party, job, batch, table, ages)

    def heads(self, question: Question, bias: np.ndarray) -> list[tuple[Any, Any, Any]]:
        """Loss of each sample, and its derivatives by h and the server model."""
        pairs = zip(question.batch, question.embeddings, strict=True)
        return [self.server.head(bias, h, self.labels[n]) for n, h in pairs]

    def batch_loss(self, question: Question, bias: np.ndarray) -> float:
        """Reduced batch loss, without regulariser."""
        total = sum(loss for loss, _, _ in self.heads(question, bias))
        return total * self.weight(question.batch)

    def weight(self, batch: np.ndarray) -> float:
        """Of one sample of the batch in the reduced loss (V-11)."""
        return 1.0 / len(batch) if self.options.reduction == "mean" else 1.0

    def server_gradient(self, questions: list[Question]) -> np.ndarray:
        """Mean over the contributors at bias^k, eq. (2a) and appendix D."""
        gradients = [
            self.weight(each.batch)
            * np.sum([slope for _, _, slope in self.heads(each, self.bias)], axis=0)
            for each in questions
        ]
        return np.mean(gradients, axis=0)

    # The rows.

    def refresh(self, row: Refresh) -> None:
        """Uploads overdue entries of the batch again; the bound is allowed (V-10)."""
        for party, job in zip(row.parties, row.jobs, strict=True):
            overdue = [n for n in row.batch if self.ages[n, party] > row.bound]
            if overdue and self.options.upload == "all":
                overdue = list(self.all_samples)
            self.upload(party, job, overdue)

    def commit(self, row: Commit) -> None:
        """One iteration k, after which every age is one more (eq. 3)."""
        if self.options.coordinated:
            self.commit_coordinated(row)
        elif self.options.client_order == "upload_first":
            self.upload_commit(row)
            self.answer_and_update([self.ask(*each) for each in zip(*row, strict=True)])
        else:
            self.commit_query_first(row)
        self.ages += 1
        self.num_commits += 1

    def commit_query_first(self, row: Commit) -> None:
        """Query, client update, upload of the new batch, server gradient."""
        questions = [
            self.ask(party, job, self.last_batch.get(party, batch))
            for party, job, batch in zip(*row, strict=True)
        ]
        client_gradients = [self.client_gradient(q, self.bias) for q in questions]
        self.update_clients(questions, client_gradients)
        self.upload_commit(row)
        uploaded = [self.ask(*each) for each in zip(*row, strict=True)]
        server_gradient = self.server_gradient(uploaded)
        self.record(questions, self.bias, server_gradient, client_gradients)
        self.update_server(server_gradient)
        self.last_batch.update(zip(row.parties, row.batches, strict=True))

    def commit_coordinated(self, row: Commit) -> None:
        """Section 4: one batch for all, everything fresh, all blocks update."""
        batch, job = row.batches[0], row.jobs[0]
        embeddings = self.fresh(batch, job)
        ages = np.zeros(embeddings.shape[:2], dtype=int)
        questions = [Question(m, job, batch, embeddings, ages) for m in self.everyone]
        self.answer_and_update(questions)

    # Updates, which leave the table as it is, and their record.

    def answer_and_update(self, questions: list[Question]) -> None:
        """Steps 2 to 4 of the upload-first order, with the choice of V-08."""
        bias_before, server_gradient = self.bias, self.server_gradient(questions)
        self.update_server(server_gradient)
        after = self.options.server_gradient == "after"
        bias = self.bias if after and not self.options.coordinated else bias_before
        client_gradients = [self.client_gradient(q, bias) for q in questions]
        self.record(questions, bias, server_gradient, client_gradients)
        self.update_clients(questions, client_gradients)

    def update_server(self, gradient: np.ndarray) -> None:
        """Eq. (4a)."""
        step_size = self.options.server_step_size(self.num_commits)
        self.bias = self.bias - step_size * gradient

    def update_clients(
        self, questions: list[Question], gradients: list[np.ndarray]
    ) -> None:
        """Eq. (4b); the parties that are not asking do not move."""
        step_size = self.options.step_size(self.num_commits)
        for question, gradient in zip(questions, gradients, strict=True):
            m = question.party
            self.theta[m] = self.theta[m] - step_size * gradient

    def record(
        self,
        questions: list[Question],
        bias: np.ndarray,
        server_gradient: np.ndarray,
        client_gradients: list[np.ndarray],
    ) -> None:
        """One entry of every list of the trace."""
        self.losses.append(
            float(np.mean([self.batch_loss(each, bias) for each in questions]))
        )
        self.ages_used.append([each.ages for each in questions])
        blocks = [server_gradient, *[each.ravel() for each in client_gradients]]
        self.gradient_norms.append(float(np.linalg.norm(np.concatenate(blocks))))

    def trace(self) -> Trace:
        return Trace(
            theta=self.theta,
            bias=self.bias,
            table=self.table,
            stamps=self.num_commits - self.ages,
            table_ages=self.ages,
            loss=self.losses,
            ages=self.ages_used,
            gradient_norm=self.gradient_norms,
        )


def example_loss(scores: np.ndarray, label: int, loss: str) -> float:
    """Cross-entropy of one sample, in nats."""
    if loss == "softmax":
        return float(np.logaddexp.reduce(scores) - scores[label])
    return float(np.logaddexp(0.0, scores[0]) - label * scores[0])


def example_gradient(scores: np.ndarray, label: int, loss: str) -> np.ndarray:
    """Derivative of `example_loss` with respect to the scores: probability - target."""
    if loss == "softmax":
        target = np.zeros(len(scores))
        target[label] = 1.0
        return np.exp(scores - np.logaddexp.reduce(scores)) - target
    return np.exp(-np.logaddexp(0.0, -scores)) - label
