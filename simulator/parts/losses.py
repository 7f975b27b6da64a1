"""Losses as records: what each asks of targets and outputs, and its numerics. No JAX.

`parts/parts.csv` lists the records, and plug-ins add theirs.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from . import catalogue
from .named import NamedPart

NUMERICS = "stalesim.simulator.problem"


@dataclass(frozen=True)
class LossPart(NamedPart):
    """What there is to say of a loss.

    Attributes:
        function: `"module:function"` of outputs `[*w, C, S]` and targets, to a loss of
            each sample, `[*w, S]`: of classes `[*w, S]`, or of numbers `[*w, C, S]`,
            whose losses are meant over `C`.
        targets: What it compares outputs with; `any` of a function of the user's own.
        two_classes: Whether it is of two classes alone.
        per_class: Whether two classes have two outputs as well; then a model of
            sequences may know more classes than the data have.
        zeros_and_ones: Whether targets must be zeros and ones.
        in_nats: Whether it is a negative log-likelihood.
        curvature: Bound of its second derivative in the logits, where it has one.
        row: `"module:function"` in NumPy, of logits and classes to the losses of rows
            and their derivatives; with it the least value of a linear model is found.
    """

    function: str
    _: KW_ONLY
    targets: Literal["classes", "numbers", "any"] = "classes"
    two_classes: bool = False
    per_class: bool = False
    zeros_and_ones: bool = False
    in_nats: bool = False
    curvature: float | None = None
    row: str = ""


SOFTMAX = LossPart(
    "softmax",
    f"{NUMERICS}.losses:softmax",
    meaning="negative log-likelihood of classes, an output for each",
    per_class=True,
    in_nats=True,
    curvature=0.5,
    row=f"{NUMERICS}.convex:softmax",
)
SIGMOID = LossPart(
    "sigmoid",
    f"{NUMERICS}.losses:sigmoid",
    meaning="negative log-likelihood of two classes, of the log odds",
    two_classes=True,
    in_nats=True,
    curvature=0.25,
    row=f"{NUMERICS}.convex:sigmoid",
)
HINGE = LossPart(
    "hinge", f"{NUMERICS}.losses:hinge", meaning="margins, one against the rest"
)
TAYLOR = LossPart(
    "taylor",
    f"{NUMERICS}.losses:taylor",
    meaning="sigmoid to second order, with an affine derivative (FedBCD, F-10)",
    two_classes=True,
    curvature=0.25,
)
SQUARED = LossPart(
    "squared",
    f"{NUMERICS}.losses:squared",
    meaning="squared distance of outputs and targets, mean of a row",
    targets="numbers",
)
BINARY = LossPart(
    "binary",
    f"{NUMERICS}.losses:binary",
    meaning="negative log-likelihood of zeros and ones, mean of a row",
    targets="numbers",
    zeros_and_ones=True,
    in_nats=True,
)


def facts(name: str) -> LossPart:
    """Returns what there is to say of a loss; nothing of a function of the user's."""
    records = catalogue.parts("losses")
    own = LossPart(name, name, targets="any")
    return next((record for record in records if record.name == name), own)


def in_nats(name: str) -> bool:
    """Says whether a problem's loss, as it is written, is a log-likelihood."""
    return name == "auto" or facts(name).in_nats
