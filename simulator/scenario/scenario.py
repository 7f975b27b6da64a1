"""The scenario: everything that is needed to repeat a study.

A YAML file is read into these classes, and a Python program builds them.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ..parts import metrics
from ..parts.base import Config, LocatedError, NamedPart, Part, tag
from ..parts.catalogue import AnyName, AnyPart, classes
from ..parts.errors import ScenarioError, documented_key, suggestion
from ..parts.functions import FunctionName, UserFunction
from ..parts.metrics import facts, in_nats
from ..parts.stop import Count, Seconds
from ..problem.capabilities import (
    DividesRows,
    HasStages,
    StoresEmbeddings,
    SumsOutputs,
    noise_of,
)
from ..problem.data.parts import Data
from ..problem.models.linear.part import Linear
from ..problem.models.parts import Model
from ..problem.models.server.part import ServerModel
from ..problem.partition import Pairing
from ..world.clients import Clients
from ..world.protocol_abilities import OwnSteps
from . import tuning
from .claims import AnyClaim, Claim
from .privacy import Privacy, check_privacy
from .setting import BaseScenario, Recording

if TYPE_CHECKING:
    from ..engine.algorithm import Algorithm
else:
    Algorithm = Any  # the engine is a floor above


class Transfer(Config):
    """The objective of federated transfer learning, on two parties' common samples.

    Source: FedBCD, section 7; F-15.
    """

    overlap: Annotated[float, Field(gt=0, le=1)]
    """Fraction of the training samples that both parties hold."""
    alpha: Annotated[float, Field(gt=0)] = 100.0
    """Weight of the label loss relative to the alignment loss."""


class Problem(Config):
    """Learning problem: model, data and their division."""

    data: Annotated[Data, AnyPart("data")]
    """Training and test data."""
    partition: Annotated[Any, AnyPart("partitions")]
    """Which client has which rows or columns."""
    model: Annotated[Model, AnyPart("models")] = Linear()
    """Model that is learned."""
    work: FunctionName | None = None
    """A function of your own, `"module:function"`, that makes the clients' gradients in
    any framework, in place of the model's: of weights, client, job and rows it returns
    a message and a mapping that has `loss`."""
    loss: Literal["auto"] | Annotated[str, AnyName("losses")] | FunctionName = "auto"
    """`auto` takes the cross-entropies `sigmoid` for two classes and `softmax` for
    more; `hinge` is one against the rest, a linear SVM where the model is linear;
    `taylor` is `sigmoid` to second order, whose derivative is affine (FedBCD, F-10).
    `squared` is of targets that are numbers, `binary` of several zeros and ones a row.
    `"module:function"` is a function of your own: outputs and targets, rows first, to a
    loss of each row. Classes of frames or tokens count one by one."""
    loss_unit: Annotated[str, Field(min_length=1, max_length=20)] | None = None
    """Unit of the loss in tables and figures, such as `mm²`. Likelihoods are in nats;
    other losses have no unit by default."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the losses of a batch combine (VAFL, V-11)."""
    l2: Annotated[float, Field(ge=0)] = 0.0
    """Coefficient a of the regulariser a/2 * |w|^2 of each client's weights (V-12)."""
    server: ServerModel | None = None
    """A network at the server over the parties' messages; by default they send logits,
    which are added up (V-13)."""
    transfer: Transfer | None = None
    """Federated transfer learning between two parties, the last one with the labels."""

    def named_parts(self) -> tuple[NamedPart, ...]:
        return (facts(self.loss),)

    @model_validator(mode="after")
    def _own_unit(self) -> "Problem":
        if self.loss_unit is not None and in_nats(self.loss):
            raise LocatedError(
                f"problem.loss_unit must be left out for the loss {self.loss!r}, which "
                f"is in nats, got {self.loss_unit!r}; remove it"
            )
        return self

    @property
    def own_functions(self) -> list[UserFunction]:
        """Functions of the user's own: loss, model and server's model."""
        found = {
            "problem.loss": self.loss if ":" in self.loss else None,
            "problem.model.build": getattr(self.model, "build", None),
            "problem.server.build": getattr(self.server, "build", None),
        }
        return [UserFunction(name, entry) for entry, name in found.items() if name]

    def has_own(self, names: Iterable[str]) -> bool:
        """Says whether models, losses or some metrics are the user's own."""
        return bool(self.own_functions) or any(
            metrics.metric(each).is_own for each in names
        )

    @property
    def is_linear(self) -> bool:
        """Whether logits are linear in features and weights."""
        return self.model.is_linear and self.server is None

    @property
    def gives_rows(self) -> bool:
        """Whether outputs come from a model of the user's own, rows first."""
        if self.partition.family == "horizontal":
            return self.model.shaped
        return self.server is not None and self.server.build is not None


class Every(Config):
    """A period: exactly one of virtual seconds, commits, rounds or epochs."""

    time: Seconds | None = None
    """Virtual seconds."""
    commits: Count | None = None
    """Versions of the model."""
    rounds: Count | None = None
    """Rounds, of protocols that have any."""
    epochs: Annotated[float, Field(gt=0)] | None = None
    """Passes over the training data, of all clients together."""

    @model_validator(mode="after")
    def _one_unit(self) -> "Every":
        units = (self.time, self.commits, self.rounds, self.epochs)
        if sum(unit is not None for unit in units) != 1:
            raise ValueError(
                "must have exactly one of time, commits, rounds and epochs; keep one"
            )
        return self


class Evaluate(Config):
    """Evaluation of the model: its period and its metrics."""

    every: Every
    """Period, in one unit."""
    metrics: Annotated[
        tuple[Annotated[str, AnyName("metrics")], ...], Field(min_length=1)
    ] = ("test_accuracy", "test_loss")
    """Metrics by name; the first one is the study's main one."""

    def named_parts(self) -> tuple[NamedPart, ...]:
        return tuple(map(metrics.metric, self.metrics))


class Probe(Config):
    """Saves the numbers themselves at chosen commits, in the table `probes`."""

    every: Count
    """Commits from one probe to the next; the first is at this commit."""
    what: Annotated[
        tuple[Literal["message", "gradient", "state"], ...], Field(min_length=1)
    ] = ("message",)
    """Message as it is sent; gradient in it, before clipping and noise; state, the
    weights that it was taken at."""


class Engine(Config):
    """How the numerics are executed."""

    mode: Literal["auto", "stepwise", "compiled", "batched", "waves"] = "auto"
    """`auto` takes the fastest: runs that share a timeline together, others together on
    a GPU and one by one on a CPU, where `batched` is slower. `waves` does the work of
    independent rows at once, on all cores that no other run takes."""
    precision: Literal["float32", "float64"] = "float32"
    """Type of all numbers of the device."""
    chunk: Annotated[int, Field(ge=1)] = 4096
    """Most rows executed by one program; memory may make it fewer."""


def _rising(looks: tuple[int, ...]) -> tuple[int, ...]:
    """Returns looks unchanged if each has more replicates than the one before."""
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise ValueError(
            f"must have more replicates at every look, got {list(looks)}; sort them, "
            f"each once"
        )
    return looks


def _with_kind(entry: object) -> object:
    """Returns an algorithm's entry with its kind, which a chain may leave out."""
    if not isinstance(entry, dict) or "chain" not in entry:
        return entry
    known = (p for p in classes("algorithms", Part) if "chain" in p.model_fields)
    return {"kind": tag(next(known)), **entry}


class Scenario(BaseScenario):
    """One study: a base, variants and a sweep of it, replicated."""

    problem: Problem
    """Data, their division, the model and the loss."""
    algorithm: Annotated[Algorithm, AnyPart("algorithms"), BeforeValidator(_with_kind)]
    """The learning algorithm: local training and aggregation."""
    evaluate: Evaluate
    """Metrics, and how often they are evaluated."""
    engine: Engine = Engine()
    """Execution of the training: device program, precision, chunks."""
    probe: Probe | None = None
    """Saves messages, gradients or states of chosen commits."""
    privacy: Privacy | None = None
    """Privacy accounting, for algorithms with noisy messages."""
    timeline: Recording | None = None
    """The timeline: a recorded one to replay, or how it is simulated."""
    claims: tuple[Annotated[Claim, AnyClaim("claims")], ...] = ()
    """Claims to be tested over the replicates."""
    looks: Annotated[
        tuple[Annotated[int, Field(ge=3)], ...], AfterValidator(_rising)
    ] = ()
    """Numbers of replicates at which claims are judged, written by
    `stalesim run --until-decided` (default: a fixed number of replicates)."""
    tune: tuning.Tune | None = None
    """Search for the best values of some entries, by `stalesim tune`."""
    compare: tuning.Compare | None = None
    """Tunes each variant before it is judged, with equal budgets and separate seeds."""

    @model_validator(mode="before")
    @classmethod
    def _of_its_own(cls, data: object) -> object:
        """Makes claims those of the scenario itself where it follows no source."""
        if not isinstance(data, dict) or data.get("source"):
            return data
        if not isinstance(claims := data.get("claims"), list | tuple):
            return data
        named = [{"origin": "own"} | c if isinstance(c, dict) else c for c in claims]
        return {**data, "claims": named}

    @model_validator(mode="after")
    def _fits(self) -> "Scenario":
        if self.problem.partition.family != self.algorithm.family:
            raise LocatedError(
                f"problem.partition.kind must be {self.algorithm.family} for the "
                f"algorithm {self.algorithm.kind!r}, got "
                f"{self.problem.partition.kind!r}; change one of them"
            )
        self._check_model()
        for part in self.listeners.values():
            part.check_algorithm(self.algorithm)
        if not self.protocol.names & {*self.algorithm.protocols}:
            known = ", ".join(self.algorithm.protocols)
            raise LocatedError(
                f"protocol.kind must be one of {known} for the algorithm "
                f"{self.algorithm.kind!r}, got {self.protocol.kind!r}; change one of "
                f"them"
            )
        if self.probe is not None and self.algorithm.family != "horizontal":
            raise LocatedError(
                f"probe must not be set for the algorithm {self.algorithm.kind!r}, "
                f"whose messages are no gradients; remove it"
            )
        if self.problem.transfer is not None:
            self._check_transfer()
        self.check_world()
        if self.problem.work is not None or self.problem.model.measured_by is not None:
            self._check_own_work()
        if self._pairing is not None:
            self._check_pairing()
        self.algorithm.check(self.problem, self.protocol)
        noise = noise_of(self.algorithm)
        if self.privacy or noise.noise_law or noise.calibrated:
            check_privacy(self)
        self._check_evaluation()
        if self.tune is not None:
            tuning.check(self.tune, self.evaluate.metrics, self.stop)
        if self.compare is not None:
            tuning.check_comparison(self, self.compare)
        return self

    @property
    def pairs(self) -> tuple[Clients, int] | None:
        """The clients that shares are paired with by how long they compute, if any."""
        if self.clients is None or self._pairing is None:
            return None
        return self.clients, self.num_clients

    @property
    def _pairing(self) -> Pairing | None:
        return getattr(self.problem.partition, "pairing", None)

    def _check_pairing(self) -> None:
        """Refuses pairings of clients whose computing times are not known or alike."""
        clients = self.clients
        groups = clients.behaviours(self.num_clients) if clients else ()
        units = {part.compute_per for *_, part in groups}
        for wrong, why in (
            (self.replays, "where a timeline is replayed, whose clients are recorded"),
            (isinstance(self.protocol, OwnSteps), "for the steps of this protocol"),
            (clients is None, "without clients"),
            (len(units) > 1, "where groups have different compute_per"),
        ):
            if wrong:
                raise LocatedError(
                    f"problem.partition.pairing must be left out {why}; remove it"
                )

    def _check_own_work(self) -> None:
        """Refuses what would be left out of the gradients of a user's own function."""
        problem, algorithm, engine = self.problem, self.algorithm, self.engine
        if problem.work is None:
            raise LocatedError(
                f"problem.work is missing; the model {problem.model.kind!r} has no "
                f"gradients of its own: name a function that makes them"
            )
        if not isinstance(algorithm, DividesRows):
            raise LocatedError(
                f"problem.work must be left out for the algorithm {algorithm.kind!r}, "
                f"whose clients' work is not apart from the rest; remove it, or take "
                f"sgd, fed_avg, fed_async or fed_buff"
            )
        beyond = algorithm.beyond_gradients
        measured = problem.model.measured_by is not None
        names = self.evaluate.metrics if measured else ()
        own = [name for name in names if metrics.metric(name).of_run]
        refused = {
            ("algorithm", *beyond): beyond,
            ("problem", "l2"): problem.l2,
            ("problem", "reduction"): problem.reduction != "mean",
            ("engine", "mode"): engine.mode != "auto",
            ("evaluate", "metrics"): own,
            ("probe",): self.probe,
        }
        for keys, given in refused.items():
            if given:
                what = f", got {', '.join(own)}" if given is own else ""
                name, rule, remedy = ".".join(map(str, keys)), "left out", "remove it"
                if keys[-1] == "proximal":
                    name, rule = documented_key(name), "0"
                    remedy = "write mu: 0 (fed_async has another by default)"
                raise LocatedError(
                    f"{name} must be {rule} with problem.work, whose function makes "
                    f"the gradients{what}; {remedy}; the function may do the same",
                    keys,
                )

    def _check_model(self) -> None:
        """Refuses models, and networks at the server, that the division has not."""
        problem, family = self.problem, self.algorithm.family
        horizontal = family == "horizontal"
        if horizontal and family not in problem.model.families:
            raise LocatedError(
                f"problem.model.kind must be for {family} data with the "
                f"algorithm {self.algorithm.kind!r}, got {problem.model.kind!r}; "
                f"take dense (fully connected layers), cnn or linear"
            )
        if problem.server is not None and (horizontal or problem.transfer is not None):
            why = "whose clients hold all columns" if horizontal else "of transfer"
            raise LocatedError(
                f"problem.server must not be set for a problem {why}; remove it"
            )
        if not horizontal and problem.model.sequential and problem.server is None:
            raise LocatedError(
                f"problem.server is missing; the model {problem.model.kind!r} of a "
                f"party needs server: {{width: NUMBER}}"
            )

    def _check_evaluation(self) -> None:
        cadence = self.protocol.cadence(self.num_clients, self.num_clients)
        if self.evaluate.every.rounds is not None and not cadence.in_rounds:
            raise LocatedError(
                f"evaluate.every.rounds must not be set for the protocol "
                f"{self.protocol.kind!r}, which has no rounds; take commits"
            )
        for name in self.evaluate.metrics:
            metrics.metric(name).refuse_algorithm(self.algorithm)
        for metric in self.stop.target or {}:
            if metric not in self.evaluate.metrics:
                raise LocatedError(
                    f"stop.target must name a metric of evaluate.metrics "
                    f"({', '.join(self.evaluate.metrics)}), got {metric!r}; "
                    f"{suggestion(metric, metrics.names())}",
                    ("stop", "target", metric),
                )
        for keys, metric, value in self._targets():
            known = metrics.find(metric)
            rule = known.range_missed(value) if known else ""
            if rule:
                raise LocatedError(
                    f"{'.'.join(map(str, keys))} must be {rule}, which {metric} can "
                    f"be, got {value:g}; change it",
                    keys,
                )

    def _targets(self) -> Iterator[tuple[tuple[str | int, ...], str, float]]:
        for metric, value in (self.stop.target or {}).items():
            yield ("stop", "target", metric), metric, value
        for index, claim in enumerate(self.claims):
            for place, metric, value in claim.targets():
                yield ("claims", index, *place), metric, value

    def _check_transfer(self) -> None:
        problem, partition = self.problem, self.problem.partition
        parties = partition.num_clients if partition.family == "vertical" else 0
        know = [tag(p) for p in classes("algorithms", Part) if SumsOutputs in p.__mro__]
        for key, fits, rule in (
            ("problem.partition", parties == 2, "must be vertical, of two parties"),
            (
                "problem.model.kind",
                problem.model.num_aligned is not None,
                "must be mlp, whose hidden units are aligned",
            ),
            (
                "problem.loss",
                problem.loss in ("auto", "taylor"),
                "must be taylor, or left out",
            ),
            (
                "algorithm.kind",
                isinstance(self.algorithm, SumsOutputs),
                f"must be one of {', '.join(know)}",
            ),
            ("protocol.kind", self.protocol.traits.batch_per_round, "must be rounds"),
        ):
            if not fits:
                raise LocatedError(
                    f"{key} {rule}, with problem.transfer; change it or remove "
                    f"problem.transfer"
                )

    def biases(self) -> Iterator[str]:
        """Yields a line on clients that count more than others."""
        if isinstance(self.algorithm, HasStages):
            yield from self.algorithm.biases(self.protocol, self.num_clients)

    def described(self) -> dict[str, object]:
        """Returns the same, and `refreshes_all` of the algorithm."""
        own = self.algorithm
        return super().described() | {
            "refreshes_all": isinstance(own, StoresEmbeddings) and own.refreshes_all,
        }

    @property
    def num_clients(self) -> int:
        return self.problem.partition.num_clients


MOST_EVALUATIONS = 1_000_000
"""Evaluations of a run."""
MOST_SAMPLES = 50_000_000
"""Samples of the jobs that one commit takes: 3 GB of numbers in the smallest buffer."""


def check_amounts(scenario: Scenario, samples: int, width: int) -> None:
    """Refuses a run that would amount to too much, as far as that can be foreseen.

    Args:
        scenario: Scenario of the run.
        samples: Samples of a job, all its steps together.
        width: Most jobs of a commit.

    Raises:
        ScenarioError: one line with the entry, its amount and the remedy.
    """
    every, stop = scenario.evaluate.every, scenario.stop
    for entry, period in every:
        end = getattr(stop, entry)
        if period is not None and end is not None:
            check_evaluations(entry, end / period)
    if samples * width > MOST_SAMPLES:
        raise ScenarioError(
            f"algorithm must leave at most {MOST_SAMPLES:,} samples of the {width} "
            f"jobs of a commit, got {samples * width:,}; take fewer local_steps, or a "
            f"smaller batch"
        )


def check_evaluations(entry: str, number: float) -> None:
    """Refuses more evaluations of a run than `MOST_EVALUATIONS`."""
    if number > MOST_EVALUATIONS:
        raise ScenarioError(
            f"evaluate.every.{entry} must leave at most {MOST_EVALUATIONS:,} "
            f"evaluations of a run, got {number:,.0f}; evaluate less often"
        )
