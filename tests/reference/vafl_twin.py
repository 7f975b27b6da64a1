"""VAFL with linear clients, once more: slow, plain NumPy, written from the paper.

A second implementation, made without sight of the first, so that agreement of the two
is evidence. Everything is float64 and most of it is loops over parties and samples.

The model. Party m embeds sample n linearly, `h[n, m] = x[n, m] @ theta[m]`, plus the
noise Z of eq. (10) in the private variant. The server model theta_0 is one bias
(V-13). The head adds everything up, `scores[n] = sum_m h[n, m] + bias`, and the loss
is softmax or sigmoid cross-entropy. Because the head is a sum, the gradient with
respect to `h[n, m]` is the same for every m and equals the gradient with respect to
the scores; the server gradient is its sum over the batch. Because a client is linear,
the noise draw does not enter its Jacobian, which is x itself (V-17).

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
from typing import NamedTuple

import numpy as np

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
        upload: "batch" or "all" (V-05).
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
        theta: client models at the end, per party [p_m, num_outputs].
        bias: server model at the end, [num_outputs].
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


Noise = Callable[[int, int, int], np.ndarray]


def run(
    features: list[np.ndarray],
    labels: np.ndarray,
    num_outputs: int,
    rows: list[Commit | Refresh],
    options: Options,
    noise: Noise | None = None,
    theta: list[np.ndarray] | None = None,
    bias: np.ndarray | None = None,
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
            [num_outputs]. A pure function: it may be asked twice for the same key.
        theta: initial client models, per party [p_m, num_outputs]; zeros if None.
        bias: initial server model, [num_outputs]; zeros if None.

    Returns:
        The trace.
    """
    simulation = Simulation(features, labels, num_outputs, options, noise, theta, bias)
    for row in rows:
        if isinstance(row, Refresh):
            simulation.refresh(row)
        else:
            simulation.commit(row)
    return simulation.trace()


class Question(NamedTuple):
    """One party's question: a batch and the embeddings the answer is based on."""

    party: int
    batch: np.ndarray
    embeddings: np.ndarray  # [B, M, num_outputs]
    ages: np.ndarray  # [B, M]


class Simulation:
    """The state of server and parties, and the rows as methods on it."""

    def __init__(
        self,
        features: list[np.ndarray],
        labels: np.ndarray,
        num_outputs: int,
        options: Options,
        noise: Noise | None,
        theta: list[np.ndarray] | None,
        bias: np.ndarray | None,
    ) -> None:
        self.features = [np.array(block, dtype=np.float64) for block in features]
        self.labels = np.array(labels).astype(int)
        self.options = options
        self.noise = noise
        self.num_parties = len(features)
        self.num_samples = len(self.labels)

        if theta is None:
            widths = [block.shape[1] for block in self.features]
            theta = [np.zeros((width, num_outputs)) for width in widths]
        if bias is None:
            bias = np.zeros(num_outputs)
        self.theta = [np.array(block, dtype=np.float64) for block in theta]
        self.bias = np.array(bias, dtype=np.float64)

        self.table = np.zeros((self.num_samples, self.num_parties, num_outputs))
        self.ages = np.ones((self.num_samples, self.num_parties), dtype=int)
        for party in range(self.num_parties):
            for sample in range(self.num_samples):
                self.table[sample, party] = self.embed(party, INITIAL_JOB, sample)

        self.num_commits = 0
        self.last_batch: dict[int, np.ndarray] = {}  # for the query-first order
        self.losses: list[float] = []
        self.ages_used: list[list[np.ndarray]] = []
        self.gradient_norms: list[float] = []

    # What a party does.

    def embed(self, party: int, job: int, sample: int) -> np.ndarray:
        """h at the party's present theta; the noise is inside an identity (eq. 10)."""
        embedding = self.features[party][sample] @ self.theta[party]
        if self.noise is None:
            return embedding
        return embedding + self.noise(party, job, sample)

    def client_gradient(self, question: Question, answer: np.ndarray) -> np.ndarray:
        """Eq. (2b) plus the regulariser: Jacobian times answer [B, num_outputs]."""
        gradient = self.options.l2 * self.theta[question.party]
        for sample, row in zip(question.batch, answer, strict=True):
            gradient = gradient + np.outer(self.features[question.party][sample], row)
        return gradient

    # What the server does.

    def upload(self, party: int, job: int, samples: Sequence[int]) -> None:
        """Party embeds, server stores; fresh until the iteration ends (V-07)."""
        for sample in samples:
            self.table[sample, party] = self.embed(party, job, sample)
            self.ages[sample, party] = 0

    def upload_commit(self, row: Commit) -> None:
        """The uploads of all contributors, before anything else reads the table."""
        for party, job, batch in zip(row.parties, row.jobs, row.batches, strict=True):
            every = self.options.upload == "all"
            self.upload(party, job, range(self.num_samples) if every else batch)

    def ask(self, party: int, batch: np.ndarray) -> Question:
        """What the table holds now for a batch."""
        table, ages = self.table[batch].copy(), self.ages[batch].copy()
        return Question(party, batch, table, ages)

    def answer(self, question: Question, bias: np.ndarray) -> np.ndarray:
        """Gradient of the reduced batch loss with respect to h, [B, num_outputs]."""
        gradients = []
        for sample, embeddings in zip(question.batch, question.embeddings, strict=True):
            scores = embeddings.sum(axis=0) + bias
            gradients.append(
                example_gradient(scores, self.labels[sample], self.options.loss)
            )
        return np.array(gradients) * self.weight(question.batch)

    def batch_loss(self, question: Question, bias: np.ndarray) -> float:
        """Reduced batch loss, without regulariser."""
        total = 0.0
        for sample, embeddings in zip(question.batch, question.embeddings, strict=True):
            scores = embeddings.sum(axis=0) + bias
            total += example_loss(scores, self.labels[sample], self.options.loss)
        return total * self.weight(question.batch)

    def weight(self, batch: np.ndarray) -> float:
        """Of one sample of the batch in the reduced loss (V-11)."""
        return 1.0 / len(batch) if self.options.reduction == "mean" else 1.0

    def server_gradient(self, questions: list[Question]) -> np.ndarray:
        """Mean over the contributors at bias^k, eq. (2a) and appendix D."""
        gradients = [self.answer(each, self.bias).sum(axis=0) for each in questions]
        return np.mean(gradients, axis=0)

    # The rows.

    def refresh(self, row: Refresh) -> None:
        """Uploads overdue entries of the batch again; the bound is allowed (V-10)."""
        for party, job in zip(row.parties, row.jobs, strict=True):
            overdue = [n for n in row.batch if self.ages[n, party] > row.bound]
            if overdue and self.options.upload == "all":
                overdue = list(range(self.num_samples))
            self.upload(party, job, overdue)

    def commit(self, row: Commit) -> None:
        """One iteration k, after which every age is one more (eq. 3)."""
        if self.options.coordinated:
            self.commit_coordinated(row)
        elif self.options.client_order == "upload_first":
            self.commit_upload_first(row)
        else:
            self.commit_query_first(row)
        self.ages += 1
        self.num_commits += 1

    def commit_upload_first(self, row: Commit) -> None:
        """Upload, server gradient, query, client update."""
        self.upload_commit(row)
        questions = [
            self.ask(party, batch)
            for party, batch in zip(row.parties, row.batches, strict=True)
        ]
        server_gradient = self.server_gradient(questions)
        self.answer_and_update(questions, server_gradient)

    def commit_query_first(self, row: Commit) -> None:
        """Query, client update, upload of the new batch, server gradient."""
        questions = [
            self.ask(party, self.last_batch.get(party, batch))
            for party, batch in zip(row.parties, row.batches, strict=True)
        ]
        client_gradients = self.client_gradients(questions, self.bias)
        self.update_clients(questions, client_gradients)

        self.upload_commit(row)
        uploaded = [
            self.ask(party, batch)
            for party, batch in zip(row.parties, row.batches, strict=True)
        ]
        server_gradient = self.server_gradient(uploaded)
        self.record(questions, self.bias, server_gradient, client_gradients)
        self.update_server(server_gradient)
        self.last_batch.update(zip(row.parties, row.batches, strict=True))

    def commit_coordinated(self, row: Commit) -> None:
        """Section 4: one batch for all, everything fresh, all blocks update."""
        batch, job = row.batches[0], row.jobs[0]
        embeddings = np.array(
            [[self.embed(m, job, n) for m in self.everyone()] for n in batch]
        )
        ages = np.zeros((len(batch), self.num_parties), dtype=int)
        questions = [Question(m, batch, embeddings, ages) for m in self.everyone()]
        self.answer_and_update(questions, self.server_gradient(questions))

    def everyone(self) -> range:
        return range(self.num_parties)

    # Updates, which leave the table as it is, and their record.

    def answer_and_update(
        self, questions: list[Question], server_gradient: np.ndarray
    ) -> None:
        """Steps 3 and 4 of the upload-first order, with the choice of V-08."""
        bias_before = self.bias
        self.update_server(server_gradient)
        after = self.options.server_gradient == "after"
        bias = self.bias if after and not self.options.coordinated else bias_before
        client_gradients = self.client_gradients(questions, bias)
        self.record(questions, bias, server_gradient, client_gradients)
        self.update_clients(questions, client_gradients)

    def client_gradients(
        self, questions: list[Question], bias: np.ndarray
    ) -> list[np.ndarray]:
        return [self.client_gradient(q, self.answer(q, bias)) for q in questions]

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
            self.theta[question.party] = (
                self.theta[question.party] - step_size * gradient
            )

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
