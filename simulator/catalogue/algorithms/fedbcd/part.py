"""Vertical learning with local steps between exchanges. No JAX in here."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field

from ....engine.algorithm import (
    FLOAT_BYTES,
    Algorithm,
    Bytes,
    ProblemShape,
    minibatches,
)
from ....engine.optimizers.part import Optimizer, programs
from ....parts.base import LocatedError
from ....problem.capabilities import SumsOutputs
from ....problem.sampler import Sampler
from ....world.protocol import Protocol

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .kernel import BlockDescentKernel
    from .transfer import TransferDescent


class BlockDescent(SumsOutputs, Algorithm):
    """Common base of FedSGD and FedBCD: the parties' models meet in a sum of outputs.

    In rounds, all parties have one batch: they exchange their models' outputs for it,
    and each makes its local steps with the received values frozen. In parallel rounds
    all of them start from the same exchange (FedBCD-p). In sequential rounds each
    starts from the outputs of those before it (FedBCD-s). The protocol decides.

    Asynchronously, which is our own extension, a ready party uploads its outputs for
    its own batch, receives the sum of the others' last uploads for that batch, and
    makes its local steps with it. All parties upload everything at the start.

    A schedule's `t` counts rounds; asynchronously, as many commits as there are
    parties count as one (F-05).

    With a network at the server (`problem.server`), it is a part of the labelled
    party's model, and moves by that party's local steps (F-29).

    Source: Liu, Kang, Zhang, Li, Cheng, Chen, Hong and Yang, A Communication-Efficient
    Collaborative Learning Framework for Distributed Features.
    """

    family: ClassVar[str] = "vertical"
    protocols: ClassVar[tuple[str, ...]] = ("rounds", "asynchronous", "t_synchronous")
    optimizer: Optimizer | None = None
    """Each party's own optimiser of its local steps, whose state is kept. By default
    plain SGD."""

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Protocol
    ) -> Sampler:
        """Returns the minibatches of a run, of which all steps of a job share one."""
        return minibatches(self, seed, pools, protocol, steps=1)

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        if protocol.traits.batch_per_round and self.samples == "own":
            raise LocatedError(
                "algorithm.samples must be common in rounds, whose parties exchange "
                "what they make of one batch (F-25), got 'own'; leave it out",
            )
        if problem.transfer is not None and self.optimizer is not None:
            raise LocatedError(
                f"algorithm.optimizer must be left out with problem.transfer, got "
                f"{self.optimizer.kind!r}; remove it",
            )

    def structure(self) -> dict[str, object]:
        found = self.model_dump(mode="json", exclude={"step_size"})
        found["proximal"] = bool(found.get("proximal"))
        return found | programs(self)

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        """Returns the bytes of one contribution: outputs up, as much down.

        A party receives one number per number that it sends (F-19), or in transfer
        learning three components per overlapping sample.
        """
        size = FLOAT_BYTES * shape.batch * shape.num_exchanged
        return {"up": size, "down": size}

    def make(
        self, setup: "RunSetup", constants: "Constants"
    ) -> "BlockDescentKernel | TransferDescent":
        from .kernel import build

        return build(self, setup, constants)


class FedSgd(BlockDescent):
    """FedSGD: one step after every exchange, which is centralised SGD in value.

    Source: FedBCD, Algorithm 1.
    """

    kind: Literal["fed_sgd"] = "fed_sgd"


class _LocalSteps(BlockDescent):
    local_steps: Annotated[int, Field(ge=1)]
    """Q, all on the batch that was exchanged."""
    local_gradient: Literal["recompute", "frozen"] = "recompute"
    """F-01. `recompute`: a party's own partial gradient at its current model, the other
    parties' outputs frozen, as the proof has it. `frozen`: parties without labels keep
    the derivative that they received, as the exchange literally has it, and as its
    security needs it. A label-free party can recompute by itself with the loss
    `taylor`."""

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        if problem.transfer is not None and self.local_gradient != "recompute":
            raise LocatedError(
                "algorithm.local_gradient must be recompute, since all that it needs "
                "is exchanged, with problem.transfer; change it or remove "
                "problem.transfer",
            )


class FedBcd(_LocalSteps):
    """FedBCD: Q local steps after every exchange.

    Source: FedBCD, Algorithms 2 and 3.
    """

    kind: Literal["fed_bcd"] = "fed_bcd"


class FedPbcd(_LocalSteps):
    """FedPBCD: FedBCD with a pull towards the model of the last exchange.

    The local gradient has mu times the model's move since then (F-14).

    Source: FedBCD, equation 15.
    """

    kind: Literal["fed_pbcd"] = "fed_pbcd"
    proximal: Annotated[float, Field(ge=0)] = 0.1
    """mu."""
