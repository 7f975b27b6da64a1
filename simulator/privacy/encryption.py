"""Homomorphic encryption as a cost: what it adds to time and bytes. No JAX in here.

Nothing is encrypted; numbers are exchanged as they are, and only their exchange takes
longer and weighs more. docs/encryption.md says how to measure what it costs.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from ..parts.base import Config

Seconds = Annotated[float, Field(ge=0)]
Bytes = Annotated[int, Field(ge=1)]


class Costs(NamedTuple):
    """The cost of a ciphertext, on one thread.

    Attributes:
        encrypt_s: Seconds to encrypt one.
        add_s: Seconds to add two.
        multiply_s: Seconds to multiply one by a number, or numbers, in the clear.
        decrypt_s: Seconds to decrypt one.
        ciphertext_bytes: Bytes of a message with one.
    """

    encrypt_s: float
    add_s: float
    multiply_s: float
    decrypt_s: float
    ciphertext_bytes: int


class _Additive(Config, ABC):
    """The common part of schemes that add ciphertexts and multiply by plain numbers.

    In every exchange a party encrypts the numbers that it sends; the party with the
    labels adds up what all have sent and multiplies the sum once, for a derivative
    that is affine; and what comes back is decrypted. A party waits for all of this,
    so that it is added once to the time of its every job, and local steps take no
    longer (F-22). Not modelled is who holds the key, and what the decrypted numbers
    tell.

    A cost that is not given is as measured; all are of one ciphertext.
    """

    capacity: ClassVar[int]
    """Numbers in a ciphertext."""
    encrypt_s: Seconds | None = None
    """Virtual seconds to encrypt."""
    add_s: Seconds | None = None
    """Seconds of an addition of two ciphertexts."""
    multiply_s: Seconds | None = None
    """Virtual seconds to multiply by a number that is not encrypted."""
    decrypt_s: Seconds | None = None
    """Seconds of a decryption."""
    ciphertext_bytes: Bytes | None = None
    """Bytes of a ciphertext."""

    @abstractmethod
    def measured(self) -> Costs:
        """Returns the default costs."""

    @property
    def costs(self) -> Costs:
        """The costs: those that are given, and measured ones for the others."""
        given = {name: getattr(self, name) for name in Costs._fields}
        own = {name: value for name, value in given.items() if value is not None}
        return self.measured()._replace(**own)

    def ciphertexts(self, num_scalars: int) -> int:
        """Returns how many ciphertexts `count` numbers fill."""
        return -(-num_scalars // self.capacity)

    def bytes_of(self, num_scalars: int) -> int:
        """Returns the bytes of a message with `count` numbers."""
        return self.ciphertexts(num_scalars) * self.costs.ciphertext_bytes

    def seconds_of(
        self,
        num_scalars: int,
        *,
        encryptions: int = 0,
        additions: int = 0,
        multiplications: int = 0,
        decryptions: int = 0,
    ) -> float:
        """Returns the seconds of `operations` on each of `count` numbers."""
        costs = self.costs
        each = (
            encryptions * costs.encrypt_s
            + additions * costs.add_s
            + multiplications * costs.multiply_s
            + decryptions * costs.decrypt_s
        )
        return self.ciphertexts(num_scalars) * each

    def exchange_s(self, num_scalars: int, num_parties: int) -> float:
        """Returns the seconds that an exchange adds to a party's job.

        The outputs of `num_parties` take one addition less: what the party with the
        labels adds of its own is not encrypted, and counts as one. A party alone
        exchanges nothing.

        Args:
            num_scalars: Numbers that a party sends, and receives.
            num_parties: Number of parties whose outputs are added up.
        """
        if num_parties == 1:
            return 0.0
        return self.seconds_of(
            num_scalars,
            encryptions=1,
            additions=num_parties - 1,
            multiplications=1,
            decryptions=1,
        )


class Paillier(_Additive):
    """Paillier's scheme: one number in a ciphertext.

    Source of the costs: measured once, on one machine, with phe 1.5 and gmpy2; on two
    others they were half to twice as much (docs/encryption.md).
    """

    kind: Literal["paillier"] = "paillier"
    capacity: ClassVar[int] = 1
    key_bits: Literal[1024, 2048, 3072] = 2048
    """Bits of the key."""

    def measured(self) -> Costs:
        return PAILLIER[self.key_bits]


class Ckks(_Additive):
    """CKKS with ring dimension N = 8192: 4,096 numbers in a ciphertext.

    Source of the costs: measured once, on one machine, with TenSEAL 0.3.18.
    """

    kind: Literal["ckks"] = "ckks"
    capacity: ClassVar[int] = 4096

    def measured(self) -> Costs:
        return CKKS


PAILLIER = {
    1024: Costs(2.0e-3, 0.007e-3, 0.08e-3, 0.6e-3, 256),
    2048: Costs(9.7e-3, 0.014e-3, 0.45e-3, 4.6e-3, 512),
    3072: Costs(37.7e-3, 0.015e-3, 1.0e-3, 14.7e-3, 768),
}
"""Costs by bits of the key; measured on one thread (docs/encryption.md)."""
CKKS = Costs(6.1e-3, 0.14e-3, 2.7e-3, 2.3e-3, 332_000)
"""Measured on one thread (docs/encryption.md)."""

Encryption = Annotated[Paillier | Ckks, Field(discriminator="kind")]
