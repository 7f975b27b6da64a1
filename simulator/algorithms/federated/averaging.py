"""Federated averaging: options. No JAX in here."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.algorithms.federated.part import Count, Federated, Weighting
from simulator.algorithms.optimizers.part import Optimizer, with_steps
from simulator.algorithms.part import StepSize


class FedAvg(Federated):
    """Averages the models of a round's clients, weighted by their numbers of samples.

    Clients make local epochs, or local steps, from the server's model w; the server
    goes from w to the sum of n_k / n w_k over the clients of the round, n the sum of
    their n_k. With `proximal` it is FedProx, and with an `optimizer`, for which w minus
    that sum is a gradient, FedAvgM, FedAdam or FedYogi. A fraction of the clients in
    each round is `clients.selection`.

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data (2017), Algorithm 1; Li et al., Federated Optimization in
    Heterogeneous Networks (2020), eq. 2; Reddi et al., Adaptive Federated Optimization
    (2021), Algorithm 2.
    """

    kind: Literal["fed_avg"] = "fed_avg"
    made_by: ClassVar[str] = "simulator.algorithms.federated.building:build"
    local_steps: Count | None = None
    """Q: steps that a client makes on its own copy, each on a batch of its own; either
    these or `local_epochs` must be given."""
    server_step_size: StepSize = 1.0
    """Step from the old model to the mean of the new ones; `step_size` is the
    clients'."""
    weighting: Weighting = "samples"
    """Mean over a round's clients: in proportion to their numbers of samples, or of all
    alike."""
    proximal: Annotated[float, Field(ge=0)] = 0.0
    """mu of FedProx: clients step on their loss plus mu / 2 times the squared distance
    from the server's model."""
    optimizer: Optimizer | None = None
    """The server's optimiser; by default none."""

    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        return with_steps(
            data, optimizer="server_step_size", local_optimizer="step_size"
        )

    @model_validator(mode="after")
    def _says_how_long(self) -> "FedAvg":
        if self.local_epochs is None and self.local_steps is None:
            raise ValueError(
                "must have local_epochs or local_steps; add for example local_epochs: 1"
            )
        return self

    @property
    def step_sizes(self) -> tuple[StepSize | None, ...]:
        """The clients' step size and the server's."""
        return (self.step_size, None, self.server_step_size)
