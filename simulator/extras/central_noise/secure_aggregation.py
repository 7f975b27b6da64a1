"""The cost of secure aggregation in time and bytes. No JAX in here.

Nothing is masked; numbers are exchanged as they are, without the rounding to integers
that masks need, and only their exchange takes longer and weighs more.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ...parts.base import Config, LocatedError

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
KEY_BYTES = SHARE_BYTES = 32
"""a_K and a_S: bytes of a public key, and of a share of a secret."""


class SecureAggregation(Config):
    """The cost of hiding single contributions from the server, which sees their sum.

    For n members of a commit and m numbers, of b = `value_bits` + ceil(log2 n) bits
    each:

        pairwise  up    2 a_K + (3 n - 2) a_S, and m b bits
                  down  2 (n - 1) (a_K + a_S), and the model
                  time  2 (n - 1) agreements and n masks of the client; (1 + d) (n - d)
                        masks and d (n - d) agreements of the server, for d drop-outs;
                        three further round trips
        enclave   up    a_K + a_S, and m b bits
                  down  a_K, and the model
                  time  an agreement and a mask of the client, and of the enclave; one
                        further round trip

    A mask is m times `mask_s`. All of the time is added once to each job, also the
    server's, for which a job is over when its contribution is unmasked: there is no
    queue. It counts as the client's computing, so that its joules are too
    many by those of the server's time and of the round trips. Not counted are shares of
    secrets as time, signatures, attestation, and what drop-outs save.

    Source: Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine
    Learning (2017), section 7 (pairwise), from memory. The abstract was read, in its
    first form (arXiv 1611.04482): these bytes give its 1.73 and 1.98 times the clear
    (16 bits; 2^10 users, 2^20 numbers; 2^14 and 2^24). Masks and agreements are counted
    from the protocol's steps; the enclave, whose cost a client is constant, is after
    Huba et al., Papaya (2022). Costs: measured once, on one core, by `openssl speed
    ecdhx25519` and `-evp aes-128-ctr`.
    """

    form: Literal["pairwise", "enclave"]
    """`pairwise`: masks between all members, who are known before a round; `enclave`:
    each member shares its mask with a trusted enclave, whenever it likes."""
    group: Annotated[int, Field(ge=2)]
    """n, most members of a commit: the size of a round, or of a buffer."""
    least: Count = 1
    """Contributions below which a commit is lost: nothing can be, or is, unmasked, and
    the model stays as it is."""
    dropouts: Annotated[int, Field(ge=0)] = 0
    """d, members that the server expects to drop out of a round (pairwise); its time
    alone depends on them."""
    value_bits: Annotated[int, Field(ge=1, le=64)] = 32
    """Bits of a number before it is masked."""
    agree_s: Seconds = 1.15e-4
    """Seconds of a key agreement."""
    mask_s: Seconds = 1.2e-9
    """Seconds per number of a mask."""
    round_trip_s: Seconds = 0.0
    """Virtual seconds of each further round trip."""

    @model_validator(mode="after")
    def _counts_fit(self) -> "SecureAggregation":
        if self.dropouts and self.form == "enclave":
            raise LocatedError(
                f"dropouts must be 0 with an enclave, which unmasks members one by "
                f"one, got {self.dropouts}; remove it"
            )
        left = self.group - self.dropouts
        if self.least > left:
            raise LocatedError(
                f"least must be at most group less dropouts, {left}, or every commit "
                f"is lost, got {self.least}; lower it"
            )
        return self

    def upload_bytes(self, num_scalars: int) -> int:
        """Returns the bytes that a member sends in a job, its message among them."""
        bits = self.value_bits + (self.group - 1).bit_length()
        masked = -(-num_scalars * bits // 8)
        if self.form == "enclave":
            return KEY_BYTES + SHARE_BYTES + masked
        return 2 * KEY_BYTES + (3 * self.group - 2) * SHARE_BYTES + masked

    @property
    def download_bytes(self) -> int:
        """Bytes that a member gets in a job on top of the model."""
        if self.form == "enclave":
            return KEY_BYTES
        return 2 * (self.group - 1) * (KEY_BYTES + SHARE_BYTES)

    def seconds(self, num_scalars: int) -> float:
        """Returns the virtual seconds that it adds to a job.

        Args:
            num_scalars: m, numbers of a message.
        """
        n, d = self.group, self.dropouts
        agreements, masks, round_trips = 2, 2, 1
        if self.form == "pairwise":
            agreements = 2 * (n - 1) + d * (n - d)
            masks, round_trips = n + (1 + d) * (n - d), 3
        each = num_scalars * self.mask_s
        trips = round_trips * self.round_trip_s
        return agreements * self.agree_s + masks * each + trips
