"""The scenario: everything that is needed to repeat a study.

A YAML file is read into these classes, and a Python program builds them.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.scenario.base import Config, PlacedError, Says
from simulator.scenario.catalogue import union
from simulator.scenario.law_checks import check_cycle
from simulator.scenario.laws import Law
from simulator.scenario.problems import Linear
from simulator.scenario.suggestions import suggestion

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Problem(Config):
    """What is learned, from what, divided how."""

    data: union("data")  # pyright: ignore[reportInvalidTypeForm]
    partition: union("partitions")  # pyright: ignore[reportInvalidTypeForm]
    model: union("models") = Linear()  # pyright: ignore[reportInvalidTypeForm]
    loss: Literal["auto", "softmax", "sigmoid"] = "auto"
    """Cross-entropy; `auto` takes `sigmoid` for two classes and `softmax` for more."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the losses of a batch combine (VAFL, V-11)."""
    l2: Annotated[float, Field(ge=0)] = 0.0
    """Coefficient a of the regulariser a/2 * |w|^2 of each client's weights (V-12)."""


class Clients(Config):
    """A client's cycle: idle, then read, then compute; laws in virtual seconds."""

    idle: Law | None = None
    compute: Law


class Every(Config):
    """A period: exactly one of virtual seconds, commits or epochs."""

    time: Seconds | None = None
    commits: Count | None = None
    epochs: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_unit(self) -> "Every":
        if (
            sum(unit is not None for unit in (self.time, self.commits, self.epochs))
            != 1
        ):
            raise ValueError(
                "must have exactly one of time, commits and epochs; keep one"
            )
        return self


class Stop(Config):
    """When a run ends: at whichever of these comes first.

    An epoch is a pass of every client over its data on average (VAFL, V-28).
    """

    time: Seconds | None = None
    commits: Count | None = None
    contributions: Count | None = None
    rounds: Count | None = None
    epochs: Annotated[float, Field(gt=0)] | None = None
    bytes: Count | None = None
    target: dict[str, float] | None = None
    """A metric and its value, looked at in evaluations; with one of the above."""

    @model_validator(mode="after")
    def _ends(self) -> "Stop":
        units = (self.time, self.commits, self.contributions, self.rounds)
        if all(unit is None for unit in (*units, self.epochs, self.bytes)):
            raise ValueError(
                "must have at least one of time, commits, contributions, rounds, "
                "epochs and bytes, or the run does not end; add one"
            )
        if self.target is not None and len(self.target) != 1:
            raise PlacedError(
                "target must be one metric and its value; write for example "
                "target: {test_accuracy: 0.9}",
                ("target",),
            )
        return self


METRICS = (
    "test_accuracy",
    "test_loss",
    "objective",
    "gradient_norm_squared",
    "optimality_gap",
)
Metric = Literal[
    "test_accuracy",
    "test_loss",
    "objective",
    "gradient_norm_squared",
    "optimality_gap",
]


class Evaluate(Config):
    """When the model is evaluated, and by which metrics."""

    every: Every
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)] = (
        "test_accuracy",
        "test_loss",
    )


class Engine(Config):
    """How the numerics are executed."""

    mode: Literal["auto", "stepwise", "compiled", "batched"] = "auto"
    precision: Literal["float32", "float64"] = "float32"
    chunk: Annotated[int, Field(ge=1)] = 4096
    """Most rows executed by one program; memory may make it fewer."""


class Claim(Config):
    """What a source says, as data: checked against a finished study, true or not.

    Exactly one of `faster` (reaches `to` in less virtual time than `than`), `higher`
    (larger final value of `metric` than `than`) and `close` (final values differ by at
    most `within`).
    """

    faster: str | None = None
    higher: str | None = None
    close: str | None = None
    than: str
    to: dict[str, float] | None = None
    by_at_least: float = 1.0
    """`faster`: smallest ratio of the slower time to the faster one."""
    metric: Metric = "test_accuracy"
    within: float | None = None
    says: str

    @model_validator(mode="after")
    def _one_kind(self) -> "Claim":
        if sum(k is not None for k in (self.faster, self.higher, self.close)) != 1:
            raise ValueError(
                "must have exactly one of faster, higher and close; keep one"
            )
        if self.faster is not None and (self.to is None or len(self.to) != 1):
            raise ValueError(
                "must say what faster leads to; add to: {test_accuracy: 0.9}"
            )
        if self.close is not None and self.within is None:
            raise ValueError("must say how close; add within: 0.01")
        return self


class Scenario(Config):
    """One study: a base, variants and a sweep of it, replicated."""

    name: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"),
        Says(
            "letters, digits, dots, _ and -, beginning with a letter or digit",
            "vafl-mnist",
        ),
    ]
    source: str = ""
    question: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    replicates: Count = 1
    problem: Problem
    clients: Clients | None = None
    protocol: union("protocols")  # pyright: ignore[reportInvalidTypeForm]
    algorithm: union("algorithms")  # pyright: ignore[reportInvalidTypeForm]
    stop: Stop
    evaluate: Evaluate
    engine: Engine = Engine()
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Each is the scenario with some entries replaced; none means the base alone."""
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Dotted keys and the values that each takes; every combination is run."""
    claims: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> "Scenario":
        if self.problem.partition.family != self.algorithm.family:
            raise PlacedError(
                f"problem.partition.kind must be {self.algorithm.family} for the "
                f"algorithm {self.algorithm.kind!r}, got "
                f"{self.problem.partition.kind!r}; change one of them",
                ("problem", "partition", "kind"),
            )
        if self.clients is None and self.protocol.kind != "centralised":
            raise PlacedError(
                "clients is missing; add it, unless the protocol is centralised",
                ("clients",),
            )
        stores = getattr(self.algorithm, "stores_embeddings", False)
        if self.protocol.kind == "bounded" and not stores:
            raise PlacedError(
                f"protocol.kind must not be 'bounded' for the algorithm "
                f"{self.algorithm.kind!r}, whose server stores no embeddings; take "
                f"the algorithm vafl or another protocol",
                ("protocol", "kind"),
            )
        order = getattr(self.algorithm, "client_order", "upload_first")
        if self.protocol.kind == "bounded" and order != "upload_first":
            raise PlacedError(
                f"algorithm.client_order must be 'upload_first' with a bounded "
                f"delay, got {order!r}; with two batches in use, V-10 does not say "
                f"whose ages are bounded",
                ("algorithm", "client_order"),
            )
        t = getattr(self.protocol, "t", 1)
        if t > self.num_clients:
            raise PlacedError(
                f"protocol.t must be at most the number of clients "
                f"({self.num_clients}), got {t}; lower it or add clients",
                ("protocol", "t"),
            )
        self._check_laws()
        for metric in self.stop.target or {}:
            if metric not in self.evaluate.metrics:
                raise PlacedError(
                    f"stop.target must name a metric of evaluate.metrics "
                    f"({', '.join(self.evaluate.metrics)}), got {metric!r}; "
                    f"{suggestion(metric, METRICS)}",
                    ("stop", "target", metric),
                )
        return self

    def _check_laws(self) -> None:
        step = getattr(self.protocol, "step", None)
        if step is not None:
            check_cycle({"protocol.step": step}, self.num_clients)
        if self.clients is not None:
            stages = {"idle": self.clients.idle, "compute": self.clients.compute}
            laws = {f"clients.{name}": law for name, law in stages.items() if law}
            check_cycle(laws, self.num_clients)

    @property
    def num_clients(self) -> int:
        """Number of clients or parties."""
        return self.problem.partition.num_clients
