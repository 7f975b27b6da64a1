"""Methods with a server in slow, plain NumPy: one interpreter of rows and stages.

Who does what when is given: rows of jobs, some of which are commits. A commit makes a
version of the model; version 0 is the start. A method is a list of stages, each a
function of the server and of some jobs:

    at a row     on its jobs: the clients' work at the version that each has read, what
                 they send, what the server makes of it, and their weights
    at a commit  on all jobs since the last one: their aggregate, what becomes of it,
                 and the step

`chain_of` makes stages of a scenario's algorithm. Models are a matrix [C, P + 1], whose
last column is the bias, or of the squared loss a vector. k counts the commits before a
row; a job's staleness is k minus the version that it has read.

Source: methods.md, and the papers that each stage names. Nothing is written from the
kernels.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Vector = np.ndarray
Options = dict[str, Any]
ROOT_SMALL = 1e-7
"""epsilon of eq. 14 of Zheng et al. (2017)."""


class Problem(NamedTuple):
    """Data and loss.

    Attributes:
        features: [N, P + 1], ones in the last column; of the squared loss [N, d].
        labels: [N], classes from 0; of the squared loss targets [N, d].
        loss: "softmax", "sigmoid" (one output), "hinge" (one output for two classes and
            else one per class) or "squared" (mean over d of (w x - y)^2).
        l2: the regulariser is l2 / 2 * |w|^2 without the bias column.
    """

    features: Vector
    labels: Vector
    loss: str
    l2: float = 0.0


@dataclass
class Job:
    """A contribution: what is given, and what stages make of it.

    Attributes:
        client: from 0.
        number: of the client's job.
        version: that it has read.
        batches: sample ids of each local step.
        num_samples: of its client.
        noise: of scale 1; None where none is added.
        read: the model that it works on.
        message: what it sends.
        weight: by its staleness.
        share: what it counts besides in a mean.
    """

    client: int
    number: int
    version: int
    batches: Sequence[Vector] = ()
    num_samples: int = 1
    noise: Vector | None = None
    read: Vector = field(default_factory=lambda: np.zeros(0))
    message: Vector = field(default_factory=lambda: np.zeros(0))
    staleness: int = 0
    weight: float = 1.0
    share: float = 1.0
    sensitivity: float = 0.0
    loss: float = math.nan
    clipped: float = math.nan
    statistics: Vector | None = None


class Row(NamedTuple):
    """Jobs that arrive together.

    Attributes:
        jobs: in the order in which they are taken.
        commits: whether a version is made.
        taken: whether the server takes what arrives; else clients have read only.
    """

    jobs: Sequence[Job]
    commits: bool
    taken: bool = True


class Server:
    """The server's model and what it knows.

    Attributes:
        models: all versions.
        reads: what clients read of each version.
        direction: of the step that is being made.
        rate: its step size.
        rows: means over each row's jobs.
    """

    def __init__(
        self, problem: Problem, start: Vector, num_clients: int, local: Any, rate: Any
    ) -> None:
        self.problem, self.num_clients = problem, num_clients
        self.models = [np.array(start, dtype=float)]
        self.reads = [self.models[0]]
        self._local, self._rate = local, rate
        self.direction, self.rate = np.zeros_like(start), 0.0
        self.gathered: list[Job] = []
        self.rows: list[dict[str, float]] = []

    @property
    def commits(self) -> int:
        return len(self.models) - 1

    @property
    def local_step(self) -> float:
        return at(self._local, self.commits)

    @property
    def usual_rate(self) -> float:
        return at(self._rate, self.commits)

    def becomes(self, model: Vector) -> None:
        """Makes a version."""
        self.models.append(model)
        self.reads.append(model)


Stage = Callable[[Server, list[Job]], None]


class Chain(NamedTuple):
    """Stages by when they are applied.

    Attributes:
        read: at every row, also where nothing is taken.
        arrival: at a row whose jobs are taken.
        commit: on all jobs since the last commit.
    """

    read: list[Stage]
    arrival: list[Stage]
    commit: list[Stage]


def play(server: Server, chain: Chain, rows: Iterable[Row]) -> Server:
    """Applies the stages to the rows in their order; returns the server."""
    for row in rows:
        jobs = list(row.jobs)
        server.rate = server.usual_rate
        for job in jobs:
            job.read = server.reads[job.version]
            job.staleness = server.commits - job.version
        for stage in (*chain.read, *(chain.arrival if row.taken else ())):
            stage(server, jobs)
        if row.taken:
            server.gathered += jobs
        if row.commits:
            for stage in chain.commit:
                stage(server, server.gathered)
            server.gathered = []
        names = ("loss", "weight", "clipped")
        server.rows.append({n: mean_of(getattr(job, n) for job in jobs) for n in names})
    return server


def at(step_size: Any, commits: int) -> float:
    """Returns a step size after some commits."""
    return step_size(commits) if callable(step_size) else float(step_size)


def mean_of(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else math.nan


# Losses


def signs(label: int, outputs: int) -> list[float]:
    """+1 for the own class and else -1; one output stands for class 1."""
    if outputs == 1:
        return [1.0 if label == 1 else -1.0]
    return [1.0 if c == label else -1.0 for c in range(outputs)]


def loss_and_slopes(kind: str, z: Vector, label: int) -> tuple[float, Vector]:
    """Returns the loss of some scores and its slopes, 0 at kinks."""
    if kind == "softmax":
        powers = np.exp(z - z.max())
        loss = float(z.max() + np.log(powers.sum()) - z[label])
        return loss, powers / powers.sum() - np.eye(len(z))[label]
    loss, slopes = 0.0, np.zeros(len(z))
    for c, sign in enumerate(signs(label, len(z))):
        margin = sign * float(z[c])
        if kind == "sigmoid":
            loss += float(np.logaddexp(0.0, -margin))
            # d/dz ln(1 + e^{-sz}) = -s / (1 + e^{sz}), written without overflow.
            slopes[c] = -sign * math.exp(-np.logaddexp(0.0, margin))
        elif margin < 1.0:
            loss, slopes[c] = loss + 1.0 - margin, -sign
    return loss, slopes


def of_sample(problem: Problem, w: Vector, i: int) -> tuple[float, Vector]:
    """Returns the loss of a sample and its gradient, without regulariser."""
    x, y = problem.features[i], problem.labels[i]
    if problem.loss == "squared":
        residual = w * x - y
        return float((residual**2).mean()), 2 / len(x) * residual * x
    loss, slopes = loss_and_slopes(problem.loss, w @ x, int(y))
    return loss, np.outer(slopes, x)


def penalised(w: Vector) -> Vector:
    """Returns a model without its bias."""
    return w if w.ndim == 1 else w * (np.arange(w.shape[1]) < w.shape[1] - 1)


def of_batch(
    problem: Problem, w: Vector, batch: Iterable[int], bound: float | None = None
) -> tuple[float, Vector, float]:
    """Returns mean loss, mean gradient with the regulariser, and share clipped.

    With a bound, the gradient of each sample, that of the regulariser included, is
    clipped before the mean.
    """
    losses, gradients, cut = [], [], []
    for i in batch:
        loss, gradient = of_sample(problem, w, int(i))
        gradient = gradient + problem.l2 * penalised(w)
        short = gradient if bound is None else clipped(gradient, bound)
        losses.append(loss)
        gradients.append(short)
        cut.append(float(short is not gradient))
    return mean_of(losses), np.mean(gradients, axis=0), mean_of(cut)


def objective(problem: Problem, w: Vector) -> float:
    """Returns the mean loss of all samples with the regulariser."""
    whole = [of_sample(problem, w, i)[0] for i in range(len(problem.labels))]
    return mean_of(whole) + problem.l2 / 2 * float((penalised(w) ** 2).sum())


def clipped(vector: Vector, bound: float) -> Vector:
    """Returns a vector of at most some norm, itself if it is."""
    norm = math.sqrt(float((vector**2).sum()))
    return vector if norm <= bound else vector * (bound / norm)


# The clients' work, and what they send


def local_work(
    proximal: float | None = None, local_optimizer: Options | None = None, **_: Any
) -> Stage:
    """Local steps y <- y - eta g; sends the sum of g, or of an optimiser's steps.

    `proximal` times the distance to what was read is added to each gradient (Li et al.
    2020, eq. 2). A state that is kept is the client's own; schedules count its own
    steps, those of earlier jobs included.
    """
    own: dict[int, Optimizer] = {}

    def stage(server: Server, jobs: list[Job]) -> None:
        eta = 1.0 if local_optimizer else server.local_step
        for job in jobs:
            y, total, losses = job.read, np.zeros_like(job.read), []
            if local_optimizer and (
                local_optimizer.get("state") != "kept" or job.client not in own
            ):
                own[job.client] = Optimizer(local_optimizer)
            for q, batch in enumerate(job.batches):
                loss, way, _ = of_batch(server.problem, y, batch)
                way = way + (proximal or 0.0) * (y - job.read)
                if local_optimizer:
                    made = job.number * len(job.batches) + q
                    way = own[job.client](way, y, made)
                losses.append(loss)
                y, total = y - eta * way, total + way
            job.message, job.loss = total, mean_of(losses)

    return stage


def clipped_work(clip_bound: float) -> Stage:
    """One step, each sample's gradient clipped (Abadi et al. 2016, Algorithm 1)."""

    def stage(server: Server, jobs: list[Job]) -> None:
        for job in jobs:
            (batch,) = job.batches
            found = of_batch(server.problem, job.read, batch, clip_bound)
            job.loss, job.message, job.clipped = found
            job.sensitivity = 2 * clip_bound / len(batch)

    return stage


def clip(clip_bound: float) -> Stage:
    """Clips all that a client sends (McMahan et al. 2018, Algorithm 1)."""

    def stage(_: Server, jobs: list[Job]) -> None:
        for job in jobs:
            short = clipped(job.message, clip_bound)
            job.clipped = float(short is not job.message)
            job.message, job.sensitivity = short, 2 * clip_bound

    return stage


def noise(multiplier: float, **_: Any) -> Stage:
    """Adds noise in proportion to the sensitivity when one sample is replaced."""

    def stage(_: Server, jobs: list[Job]) -> None:
        for job in jobs:
            job.message = job.message + multiplier * job.sensitivity * job.noise

    return stage


def as_moves() -> Stage:
    """Takes sums of gradients as what clients moved."""

    def stage(server: Server, jobs: list[Job]) -> None:
        for job in jobs:
            job.message = server.local_step * job.message

    return stage


def compensate(strength: float, adaptive: bool = False, decay: float = 0.95) -> Stage:
    """g + lambda g g (now - read), elementwise (Zheng et al. 2017, eq. 10 and 14).

    Adaptive: lambda / sqrt(MeanSquare + 1e-7), of the average that already has the mean
    of this row's g g.
    """
    average: Vector | float = 0.0

    def stage(server: Server, jobs: list[Job]) -> None:
        nonlocal average
        rate: Any = strength
        if adaptive:
            squares = np.mean([job.message**2 for job in jobs], axis=0)
            average = decay * average + (1 - decay) * squares
            rate = strength / np.sqrt(average + ROOT_SMALL)
        for job in jobs:
            apart = server.models[-1] - job.read
            job.message = job.message + rate * job.message**2 * apart

    return stage


# Weights


def weight_of(server: Server, job: Job, kind: str, o: Options, seen: Counter) -> float:
    """Returns w of a job; `seen` counts the clients' contributions, with these."""
    s, K = job.staleness, server.num_clients
    if kind == "polynomial":
        return (1.0 + s) ** -o["exponent"]
    if kind == "hinge":
        late = s - o["late"]
        return 1.0 if late <= 0 else 1.0 / (o["slope"] * late + 1.0)
    if kind == "inverse":  # Mishchenko's form, section 1, divided by n
        return o["concurrency"] / max(o["concurrency"], s)
    if kind == "delay_adaptive":  # section 1, with the bound itself
        steep = 4.0 * o["smoothness"] * s * server.usual_rate
        within = s <= o["concurrency"] or steep == 0.0
        return 1.0 if within else min(1.0, 1.0 / steep)
    if kind == "inverse_share":  # sections 8 and 9
        shares = o["shares"] or [seen[c] for c in range(K)]
        return sum(shares) / (K * shares[job.client])
    if kind == "repeats":  # THROTTLE, section 12
        return 1.0 / (K * o["base"] ** (seen[job.client] - 1))
    if kind == "distance":  # Picky SGD, section 12
        return float(np.linalg.norm(server.models[-1] - job.read) <= o["largest"])
    return 1.0


def weigh(weight: Options | None = None, weighting: str = "equal") -> Stage:
    """Weighs contributions by staleness, and shares by numbers of samples."""
    o, seen = weight or {"kind": "constant"}, Counter[int]()

    def stage(server: Server, jobs: list[Job]) -> None:
        seen.update(job.client for job in jobs)
        for job in jobs:
            job.weight *= weight_of(server, job, o["kind"], o, seen)
            job.share = job.num_samples if weighting == "samples" else 1.0
            if weighting == "processed":
                job.share = sum(len(batch) for batch in job.batches)
        if o["kind"] == "repeats" and len(seen) == server.num_clients:
            seen.clear()  # the round is over

    return stage


# Aggregates of a commit's contributions


def mean(divisor: float | None = None) -> Stage:
    """The mean of contributions times weights, by shares; the sum over a divisor."""

    def stage(server: Server, jobs: list[Job]) -> None:
        total = np.zeros_like(server.direction)
        for job in jobs:
            total = total + job.share * job.weight * job.message
        server.direction = total / (divisor or sum(job.share for job in jobs))

    return stage


def mean_of_clients() -> Stage:
    """The mean over clients of each one's mean: Malenia. Section 3."""

    def stage(server: Server, jobs: list[Job]) -> None:
        clients = sorted({job.client for job in jobs})
        rows = [[job.message for job in jobs if job.client == c] for c in clients]
        means = [np.mean(row, axis=0) for row in rows]
        server.direction = np.sum(means, axis=0) / server.num_clients

    return stage


def newest(max_age: float | None = None) -> Stage:
    """The mean of every client's newest contribution: IA2SGD, ACED, MIFA. Section 6.

    With an age, of those whose read is at most so many commits ago; of none, zero.
    Else of all: one that has sent nothing counts with zero.
    """
    entries: dict[int, Job] = {}

    def stage(server: Server, jobs: list[Job]) -> None:
        entries.update({job.client: job for job in jobs})
        limit = math.inf if max_age is None else max_age
        young = [j for j in entries.values() if server.commits - j.version <= limit]
        total = np.sum([job.message for job in young] or [0 * jobs[0].read], axis=0)
        number = server.num_clients if max_age is None else len(young)
        server.direction = total / max(number, 1)

    return stage


def area() -> Stage:
    """u <- u + (1/n) (y_i - y_i'), y_i' what client i sent last, else x_0: AREA."""
    memory: dict[int, Vector] = {}

    def stage(server: Server, jobs: list[Job]) -> None:
        moved = np.zeros_like(server.direction)
        for job in jobs:
            own = job.read - server.local_step * job.message
            moved = moved + own - memory.get(job.client, server.models[0])
            memory[job.client] = own
        server.direction = -moved / server.num_clients

    return stage


def calibrated() -> Stage:
    """h + (1/M) sum (D_i - h_i), then h_i := D_i: CA2FL. Section 6."""
    cache: dict[int, Vector] = {}

    def stage(server: Server, jobs: list[Job]) -> None:
        old = sum(cache.values(), np.zeros_like(server.direction)) / server.num_clients
        residual = np.zeros_like(server.direction)
        for job in jobs:
            residual = residual + job.message - cache.get(job.client, 0.0)
            cache[job.client] = job.message
        server.direction = old + residual / len(jobs)

    return stage


def two_tables() -> Stage:
    """Means per client of this round, and a table of the next: Ringleader. Section 5.

    The last job of a commit is that of a client that is served by it.
    """
    now: dict[int, list[Vector]] = {}
    following: dict[int, list[Vector]] = {}
    served: set[int] = set()

    def stage(server: Server, jobs: list[Job]) -> None:
        nonlocal now, following
        for job in jobs:
            table = following if job.client in served else now
            table.setdefault(job.client, []).append(job.message)
        server.direction = np.mean([np.mean(v, axis=0) for v in now.values()], axis=0)
        served.add(jobs[-1].client)
        if len(served) == server.num_clients:
            now, following = following, {}
            served.clear()

    return stage


# What becomes of the aggregate


def scale_by_weight() -> Stage:
    """Weights the step in place of the direction."""

    def stage(server: Server, jobs: list[Job]) -> None:
        weight = mean_of(job.weight for job in jobs)
        server.direction = server.direction / (weight or 1.0)
        server.rate *= weight

    return stage


def limit_by_staleness(staleness_threshold: int, learning_rate: float = 1.0) -> Stage:
    """Steps of min(eta, 1 / tau) where the largest staleness is beyond: FADAS."""

    def stage(server: Server, jobs: list[Job]) -> None:
        tau, eta = max(job.staleness for job in jobs), server.rate * learning_rate
        if tau > staleness_threshold:
            server.rate *= min(eta, 1.0 / tau) / eta

    return stage


def cosine(start: float, length: int) -> Callable[[int], float]:
    """Half a period, down to zero (Loshchilov and Hutter 2017, eq. 5)."""
    return lambda t: 0.5 * start * (1 + np.cos(np.pi * min(t, length) / length))


class Optimizer:
    """The direction that an optimiser makes of gradients, one after the other.

    Source: Polyak (1964); Kingma and Ba (2015), Algorithm 1; Loshchilov and Hutter
    (2019), Algorithm 2; Reddi et al. (2018), amsgrad; Reddi et al. (2021), in optax's
    forms, where yogi's moments start at 1e-6 and epsilon is under the roots of adagrad
    and rmsprop; methods.md, section 10, delayed Nesterov.
    """

    def __init__(self, o: Options) -> None:
        self.o, self.t = o, 0
        slow = 0.99 if "small" in o else 0.999
        self.b1 = o.get("b1", o.get("decay", 0.9))
        self.b2 = o.get("b2", o.get("second_decay", slow))
        self.eps = o.get("eps", o.get("small", 1e-8))
        first = 1e-6 if o["kind"] == "yogi" else 0.0
        self.m, self.v, self.most = (np.array(first) for _ in range(3))
        self.buffer: Vector | float = 0.0

    def __call__(self, g: Vector, w: Vector, made: int) -> Vector:
        """Returns the direction, learning rate and decay included."""
        if self.o.get("clip_norm"):
            g = clipped(g, self.o["clip_norm"])
        rate, self.t = self.o.get("learning_rate", 1.0), self.t + 1
        if isinstance(rate, dict):
            rate = cosine(rate["init_value"], rate["decay_steps"])(made)
        way = getattr(self, self.o["kind"])(g)
        return rate * (way + self.o.get("weight_decay", 0.0) * w)

    def momentum(self, g: Vector) -> Vector:
        self.m = self.b1 * self.m + g
        return self.m

    def sgd(self, g: Vector) -> Vector:
        mu = self.o.get("momentum", 0.0)
        self.m = mu * self.m + g
        return g + mu * self.m if self.o.get("nesterov") else self.m

    def sign_sgd(self, g: Vector) -> Vector:
        return np.sign(g)

    def adagrad(self, g: Vector) -> Vector:
        self.v = self.v + g * g
        return g / np.sqrt(self.v + self.eps)

    def rmsprop(self, g: Vector) -> Vector:
        slow = self.o.get("second_decay", self.o.get("decay", 0.9))
        self.v = slow * self.v + (1 - slow) * g * g
        return g / np.sqrt(self.v + self.eps)

    def adam(self, g: Vector) -> Vector:
        return self._ratio(g, self.b2 * self.v + (1 - self.b2) * g * g)

    adamw = adam

    def yogi(self, g: Vector) -> Vector:
        return self._ratio(g, self.v - (1 - self.b2) * np.sign(self.v - g * g) * g * g)

    def amsgrad(self, g: Vector) -> Vector:
        """Without corrections of bias, as FADAS's paper has it."""
        self.m = self.b1 * self.m + (1 - self.b1) * g
        self.v = self.b2 * self.v + (1 - self.b2) * g * g
        self.most = np.maximum(self.most, self.v)
        return self.m / (np.sqrt(self.most) + self.eps)

    def _ratio(self, g: Vector, v: Vector) -> Vector:
        self.m, self.v = self.b1 * self.m + (1 - self.b1) * g, v
        first = self.m / (1 - self.b1**self.t)
        return first / (np.sqrt(self.v / (1 - self.b2**self.t)) + self.eps)

    def delayed_nesterov(self, g: Vector) -> Vector:
        N, c, beta = self.o["period"], self.o["spread"], self.b1
        self.buffer = self.buffer + g
        if self.t % N:
            return c * beta * self.m + g / N
        self.m, self.buffer = beta * self.m + self.buffer / N, 0.0
        return (1 - c * N + c) * beta * self.m + g / N


def optimise(rule: Optimizer) -> Stage:
    """Takes the direction that an optimiser makes of the aggregate."""

    def stage(server: Server, _: list[Job]) -> None:
        server.direction = rule(server.direction, server.models[-1], server.commits)

    return stage


# The server's step


def step(**_: Any) -> Stage:
    """x <- x - rate * direction."""

    def stage(server: Server, _: list[Job]) -> None:
        server.becomes(server.models[-1] - server.rate * server.direction)

    return stage


def read_ahead(rule: Optimizer) -> Stage:
    """Clients read x - e beta m of the version that was made (HeLoCo)."""

    def stage(server: Server, _: list[Job]) -> None:
        server.reads[-1] = server.models[-1] - server.rate * rule.b1 * rule.m

    return stage


def mix(mixing: float) -> Stage:
    """x <- (1 - a) x + a x_client (Xie, Koyejo and Gupta 2019, Algorithm 1)."""

    def stage(server: Server, jobs: list[Job]) -> None:
        (job,) = jobs
        a = mixing * job.weight
        own = job.read - server.local_step * job.message
        server.becomes((1 - a) * server.models[-1] + a * own)

    return stage


# Chains of a scenario's algorithm

STAGES: dict[str, tuple[str, Callable[..., Stage]]] = {
    "local_work": ("arrival", local_work),
    "clipped_work": ("arrival", clipped_work),
    "clip": ("arrival", clip),
    "noise": ("arrival", noise),
    "as_moves": ("arrival", as_moves),
    "compensate": ("arrival", compensate),
    "weigh": ("arrival", weigh),
    "mean": ("commit", mean),
    "malenia": ("commit", mean_of_clients),
    "ia2sgd": ("commit", newest),
    "area": ("commit", area),
    "ca2fl": ("commit", calibrated),
    "ringleader": ("commit", two_tables),
    "scale_by_weight": ("commit", scale_by_weight),
    "limit_by_staleness": ("commit", limit_by_staleness),
    "mix": ("commit", mix),
    "step": ("commit", step),
}
"""When each stage of a scenario is applied, and its function."""
LINEAR = ("momentum", "sgd", "delayed_nesterov")


def opened(o: Options) -> list[Options]:
    """Returns the stages of a named method, as a scenario has them."""
    kind, found = o["kind"], []
    if kind == "chained":
        return list(o["chain"])
    work, mechanism = {"kind": "local_work"}, o.get("mechanism")
    work |= {key: o.get(key) for key in ("proximal", "local_optimizer")}
    if mechanism and mechanism["clip"] == "sample":
        work = {"kind": "clipped_work", "clip_bound": mechanism["clip_bound"]}
    elif mechanism:
        found.append({"kind": "clip", "clip_bound": mechanism["clip_bound"]})
    if mechanism:
        found.append({"kind": "noise", "multiplier": mechanism["multiplier"]})
    if o.get("compensation"):
        found.append({"kind": "compensate", **o["compensation"]})
    if kind in ("fed_avg", "fed_buff"):
        found.append({"kind": "as_moves"})
    options = {key: o[key] for key in ("weight", "weighting") if key in o}
    return [work, *found, {"kind": "weigh", **options}, *server_stages(o)]


def server_stages(o: Options) -> list[Options]:
    """Returns the last stages of a named method."""
    kind, optimizer = o["kind"], o.get("optimizer")
    if kind == "fed_async":
        return [{"kind": "mix", "mixing": o["mixing"]}]
    options = {key: o[key] for key in ("divisor", "max_age") if key in o}
    found: list[Options] = [{"kind": kind if kind in STAGES else "mean", **options}]
    if o.get("staleness_threshold") is not None:
        rate = (optimizer or {}).get("learning_rate", 1.0)
        limit = {"staleness_threshold": o["staleness_threshold"], "learning_rate": rate}
        found.append({"kind": "limit_by_staleness", **limit})
    if optimizer:
        linear = optimizer["kind"] in LINEAR and not optimizer.get("clip_norm")
        if not linear and o.get("weight", {"kind": "constant"})["kind"] != "constant":
            found.append({"kind": "scale_by_weight"})
        found.append({"kind": "optimise", "optimizer": optimizer})
    return [*found, {"kind": "step"}]


def chain_of(
    stages: Iterable[Options], known: dict[str, tuple[str, Callable[..., Stage]]]
) -> Chain:
    """Makes functions of stages as a scenario has them.

    Args:
        stages: in their order.
        known: `STAGES`, perhaps with more.
    """
    chain, last = Chain([], [], []), []
    for options in stages:
        o = {key: value for key, value in options.items() if key != "kind"}
        if options["kind"] == "optimise":
            rule = Optimizer(o["optimizer"])
            chain.commit.append(optimise(rule))
            last += [read_ahead(rule)] if o["optimizer"].get("look_ahead") else []
        else:
            place, make = known[options["kind"]]
            getattr(chain, place).append(make(**o))
    chain.commit.extend(last)
    return chain


def rates_of(o: Options) -> tuple[Any, Any]:
    """Returns the step sizes of clients and server."""
    kind, usual = o["kind"], o["step_size"]
    local = o.get("local_step_size")
    if kind == "chained":
        own = o["chain"][-1].get("step_size")
        return usual, usual if own is None else own
    server = o["server_step_size"] if kind in ("fed_avg", "fed_buff") else usual
    server = 1.0 if kind == "area" else server
    return usual if local is None else local, server
