"""The mean of a commit of whose sum alone the server knows. No JAX in here."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ...algorithms.federated.chain import (
    AggregatePart,
    AttackPart,
    Chained,
    ReceivePart,
    SendPart,
)
from ...algorithms.federated.parts import Clip, NoiseOptions, Weigh
from ...learning.shape import ProblemShape
from ...models.parts import ModelCounts
from ...privacy.releases import Calibrated, Gaussian, Guarantee
from .secure_aggregation import SecureAggregation

ZEROED = "one client with all that it sends, zeroed"
"""What the guarantee protects."""
ROUNDS = "synchronous"
"""Protocol whose members of a commit are known before they work."""


class NoisyMean(NoiseOptions, AggregatePart):
    """The weighted mean of a commit's contributions, with the server's noise.

    Clients clip what they send to C, and the sum of a commit gets normal noise of
    `multiplier` times C, before it is divided by the number of contributions. The sum
    is over a row's, or over what has gathered where the protocol gathers them.

    Source: McMahan et al., Learning Differentially Private Recurrent Language Models
    (2018), Algorithm 1; in buffers: Nguyen et al., Federated Learning with Buffered
    Asynchronous Aggregation (2022), section 5.
    """

    kind: Literal["noisy_mean"] = "noisy_mean"
    made_by: ClassVar[str] = f"{__package__}.running:noisy_mean"
    protocols: ClassVar[tuple[str, ...]] = (
        *("asynchronous", "t_synchronous", "synchronous", "cyclic"),
        *("buffered", "collect", "routed"),
    )
    secure: SecureAggregation | None = None
    """Cost of secure aggregation; by default the server sees all contributions."""

    @property
    def noise_law(self) -> str:
        return self.law

    def structure(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def clip_of(self, method: Chained) -> Clip:
        """Returns the stage of a method that clips what is sent.

        Raises:
            LocatedError: What is sent last is not clipped as a whole.
        """
        sent = [stage for stage in method.stages if isinstance(stage, SendPart)]
        if not sent or not isinstance(sent[-1], Clip):
            last = getattr(sent[-1], "kind", "") if sent else "nothing"
            raise method.refusal(
                self,
                "",
                "must have clip as the last stage of what is sent, for the noise is in "
                f"proportion to its bound, got {last!r}; put clip there",
            )
        return sent[-1]

    def fits(self, method: Chained) -> None:
        """Refuses sums of which a client's part is not bounded by the clipping."""
        self.clip_of(method)
        if self.law != "gaussian":
            raise method.refusal(
                self,
                "law",
                f"must be gaussian for noise of the server, got {self.law!r}; change "
                "it",
            )
        for stage in method.stages:
            changes = isinstance(stage, ReceivePart) and not stage.keeps_bound
            if changes or isinstance(stage, AttackPart):
                raise method.refusal(
                    stage,
                    "",
                    "must be left out with noise of the server, which is for the sum "
                    f"of what clients have clipped, got {getattr(stage, 'kind', '')!r};"
                    " remove it",
                )
            if not isinstance(stage, Weigh):
                continue
            if stage.weighting != "equal":
                raise method.refusal(
                    stage,
                    "weighting",
                    "must be equal with noise of the server, for a client's samples "
                    f"would multiply its bound, got {stage.weighting!r}; write equal",
                )
            if not stage.weight.at_most_one:
                raise method.refusal(
                    stage,
                    "weight",
                    "must be at most 1 with noise of the server, for it multiplies a "
                    f"client's bound, got {stage.weight.kind!r}; take constant or "
                    "polynomial",
                )

    def check(self, method: Chained, protocol: Any) -> None:
        """Refuses pairwise masks where members are not known beforehand."""
        pairwise = self.secure is not None and self.secure.form == "pairwise"
        if pairwise and ROUNDS not in protocol.names:
            raise method.refusal(
                self,
                "secure.form",
                f"must be enclave for the protocol {protocol.kind!r}, whose members of "
                "a commit are not known before they work, got 'pairwise'; change it, "
                f"or take {ROUNDS}",
            )

    def check_model(self, method: Chained, counts: ModelCounts) -> None:
        method.refuse_statistics(self, counts, "averaged without noise")

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        return (
            given
            if self.secure is None
            else self.secure.upload_bytes(shape.num_weights)
        )

    def answer_bytes(self, shape: ProblemShape) -> int:
        return 0 if self.secure is None else self.secure.download_bytes

    def overhead_s(self, shape: ProblemShape) -> float:
        return 0.0 if self.secure is None else self.secure.seconds(shape.num_weights)

    def calibrated(self, name: str) -> Calibrated | None:
        return None if self.budget is None else self.budget.known(name)

    def guarantees(
        self, method: Chained, num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        from ...privacy.guarantees import Drawing, lacking  # SciPy

        lacks = lacking(Drawing.of(method))
        why = "the noise is for all that a commit has of a client"
        if lacks:
            why += ", but " + "; ".join(lacks)
        release = Gaussian(self.multiplier_at(1.0))
        law = "Gaussian, of the server, clip: contribution"
        one = Guarantee(release, not lacks, why, law, ZEROED, by_commit=True)
        return (one,) * len(num_samples)
