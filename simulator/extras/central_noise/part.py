"""The mean of a commit of which the server sees the sum alone.

No JAX is imported until a run needs it.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from ...catalogue.algorithms.federated.chain import (
    AttackPart,
    Chained,
    ReceivePart,
    SendPart,
    in_program,
)
from ...catalogue.algorithms.federated.clients import Clip, NoiseOptions
from ...catalogue.algorithms.federated.server import Gathered, Weigh, WeightedMean
from ...catalogue.algorithms.federated.stages import (
    Contributions,
    ServerRow,
    Step,
    divisor,
)
from ...files.timeline import NO_COMMIT
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...privacy.releases import Gaussian, Guarantee
from ...problem.constants import Constants
from ...problem.models.parts import ProblemShape
from ...world.protocol import Protocol
from ...world.protocol_abilities import LimitsGathering
from .secure_aggregation import SecureAggregation

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ...engine.kernel import Info
    from ...engine.setup import RunSetup
    from ...privacy import mechanisms
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    mechanisms = Late("...privacy.mechanisms", __package__)
    Array = Info = RunSetup = Any

ZEROED = "one client with all that it sends, zeroed"
"""The protected unit of the guarantee."""
ROUNDS = "synchronous"
"""Protocol whose members of a commit are known before they work."""
AFRESH = {"local_work", "clip", "as_moves", "weigh", "noisy_mean", "step"}
"""Stages in which clients keep nothing from one message to the next."""
CHUNK = 65_536
"""Rows per chunk of a timeline that is simulated for the size of its commits."""


class NoisyMean(NoiseOptions, WeightedMean):
    """The weighted mean of a commit's contributions, with the server's noise.

    Clients clip their messages to C, and the sum of a commit gets normal noise of
    `multiplier` times C, before it is divided by the number of contributions. The sum
    is over a row's, or over the gathered ones where the protocol gathers them.

    Source: McMahan et al., Learning Differentially Private Recurrent Language Models
    (2018), Algorithm 1; in buffers: Nguyen et al., Federated Learning with Buffered
    Asynchronous Aggregation (2022), section 5.
    """

    kind: Literal["noisy_mean"] = "noisy_mean"
    statistics_would_be: ClassVar[str] = "averaged without noise"
    draws: ClassVar[bool] = True
    takes_sums: ClassVar[bool] = False
    protocols: ClassVar[tuple[str, ...]] = (
        *("asynchronous", "t_synchronous", "synchronous", "cyclic"),
        *("buffered", "collect", "routed"),
    )
    sums: ClassVar[str] = "a commit"
    """The sum that noise is for, in words."""
    secure: SecureAggregation | None = None
    """Cost of secure aggregation; by default the server sees all contributions."""
    _scale: Array
    _least: Array

    def structure(self) -> dict[str, object]:
        return {"kind": self.kind}

    def clip_of(self, method: Chained) -> Clip:
        """Returns the method's stage that clips the message.

        Raises:
            LocatedError: The last stage of sending does not clip the whole message.
        """
        sent = [stage for stage in method.stages if isinstance(stage, SendPart)]
        if not sent or not isinstance(sent[-1], Clip):
            last = getattr(sent[-1], "kind", "") if sent else "nothing"
            raise method.refusal(
                self,
                "",
                "must have clip as the last stage of the message, because the noise "
                f"is proportional to its bound, got {last!r}; put clip there",
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

    def check(self, method: Chained, protocol: Protocol) -> None:
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

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        """Returns the bytes of a message, masked or as it is."""
        if self.secure is None:
            return given
        return self.secure.upload_bytes(shape.num_weights)

    def answer_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of the masks that a client gets."""
        return 0 if self.secure is None else self.secure.download_bytes

    def overhead_s(self, shape: ProblemShape) -> float:
        """Returns the seconds that masking adds to a job."""
        return 0.0 if self.secure is None else self.secure.seconds(shape.num_weights)

    def guarantees(
        self, method: Chained, num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        """Returns the guarantee of one message of each client: of all of a commit."""
        from ...privacy.guarantees import lacking  # SciPy

        lacks = lacking(method)
        why = f"the noise is for all that {self.sums} has of a client"
        if lacks:
            why += ", but " + "; ".join(lacks)
        release = Gaussian(self.multiplier_at(1.0))
        law = "Gaussian, of the server, clip: contribution"
        kinds = {getattr(stage, "kind", "") for stage in method.stages}
        local = getattr(method.work, "local_optimizer", None)
        keeps = method.sampling == "shuffled" or (local and local.state == "kept")
        afresh = not keeps and kinds <= AFRESH
        one = Guarantee(release, not lacks, why, law, ZEROED, True, afresh)
        return (one,) * len(num_samples)

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        return in_program(self, (), **self.facts(setup))

    def facts(self, setup: RunSetup) -> dict[str, object]:
        """Returns the facts of a run, of which its clipping gives the noise's scale.

        Raises:
            ScenarioError: Secure aggregation is for fewer members than commits have, or
                no commit has as many as it needs.
        """
        method = setup.scenario.algorithm
        assert isinstance(method, Chained)  # whose stage it is
        secure = self.secure
        if secure is not None:
            key = method.key_of(self, "secure")
            most = _most_applied(setup)
            what = "the contributions that a commit may have"
            if most > secure.group:
                raise ScenarioError(
                    f"{key}.group must be at least {most}, {what}, got {secure.group}; "
                    f"raise it"
                )
            if most < secure.least:
                raise ScenarioError(
                    f"{key}.least must be at most {most}, {what}, or every commit is "
                    f"lost, got {secure.least}; lower it"
                )
        scale = self.clip_of(method).clip_bound * self.multiplier_at(1.0)
        return {
            "_gathers": setup.scenario.protocol.gathers,
            "_scale": jnp.asarray(scale, float),
            "_least": jnp.int32(1 if secure is None else secure.least),
        }

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Gathered | None
    ) -> tuple[Step, Gathered | None, Info]:
        """Returns the mean with noise, drawn by version, what gathers, and info."""
        found, after, info = super().__call__(row, contributions, state)
        count = row.event.present().sum(dtype=jnp.int32)
        count += 0 if state is None else state.number
        enough = found.applies & (count >= self._least)
        zero = jnp.zeros(found.direction.size, found.direction.dtype)
        applies = self.draws_in(row, enough)
        noise = jax.lax.cond(applies, partial(self.drawn, row), lambda x: x, zero)
        noise = contributions.scaled(noise / divisor(count).astype(zero.dtype))
        direction = found.direction + noise.reshape(found.direction.shape)
        found = found._replace(direction=direction, applies=applies)
        return found, after, info | {"noise_norm": jnp.sqrt(jnp.sum(noise**2))}

    def draws_in(self, row: ServerRow, enough: Array) -> Array:
        """Returns whether a row draws noise and makes a step.

        Args:
            row: The row.
            enough: Whether it makes a commit of enough contributions.
        """
        return enough

    def drawn(self, row: ServerRow, zero: Array) -> Array:
        """Returns the noise of a commit's sum, by its version."""
        return mechanisms.gaussian(row.server_key, zero, self._scale)[0]


def _most_applied(setup: RunSetup) -> int:
    """Returns the most contributions of a commit.

    Where the protocol does not limit them, or a recording may be of other options, the
    timeline is played to know, which depends on no numerics.
    """
    protocol = setup.scenario.protocol
    if not protocol.gathers:
        return setup.timeline.width
    limits = isinstance(protocol, LimitsGathering)
    known = protocol.most_gathered(setup.shape.num_clients) if limits else None
    if known is not None and not setup.scenario.replays:
        return known
    commits = [chunk.jobs.commit for chunk in setup.timeline.chunks(CHUNK)]
    commit = np.concatenate(commits)
    counts = np.unique(commit[commit != NO_COMMIT], return_counts=True)[1]
    return int(counts.max(initial=0))
