"""A vector of each client, and the sum of all of them."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ....files.timeline import NO_WORKER


class ClientTable(NamedTuple):
    """A vector of each client, and the sum of all of them.

    The sum runs along, so that an entry costs as much as one vector. Compensated
    (Knuth, The Art of Computer Programming 2, 4.2.2), it stays the sum of the entries
    to rounding however many there have been; nothing is summed up again.

    Attributes:
        entries: Vectors, but for the last that came; anything where there are no
            contributions.
        counts: Contributions of each entry.
        total: Sum of the entries.
        error: What rounding has taken from it.
        last_client: Client of the last vector that came.
        last: That vector. It is written before the next one is read: an entry that is
            read and then written would have XLA copy the whole table in each row.
    """

    entries: Float[Array, "K ..."]
    counts: Int[Array, " K"]
    total: Float[Array, "..."]
    error: Float[Array, "..."]
    last_client: Int[Array, ""]
    last: Float[Array, "..."]

    @classmethod
    def empty(cls, num_clients: int, like: Float[Array, "..."]) -> "ClientTable":
        """Returns a table of zeros.

        Args:
            num_clients: K.
            like: A vector.
        """
        zeros = jnp.zeros_like(like)
        entries = jnp.zeros((num_clients, *like.shape), like.dtype)
        counts = jnp.zeros(num_clients, jnp.int32)
        return cls(entries, counts, zeros, zeros, jnp.int32(NO_WORKER), zeros)

    @property
    def sum(self) -> Float[Array, "..."]:
        """Sum of the entries."""
        return self.total + self.error

    def written(self) -> Float[Array, "K ..."]:
        """Returns the vectors of all clients, the last one that came among them."""
        return self.entries.at[self.last_client].set(self.last, mode="drop")

    def of(self, client: Int[Array, ""]) -> Float[Array, "..."]:
        """Returns a client's entry; zeros where it has none, and of padding."""
        there = self.counts.at[client].get(mode="fill", fill_value=0) > 0
        entry = self.written().at[client].get(mode="fill", fill_value=0)
        return jnp.where(there, entry, 0)

    def replaced(
        self, client: Int[Array, ""], entry: Float[Array, "..."]
    ) -> "ClientTable":
        """Returns the table with a newer entry of a client; as it is for padding."""
        there = client < self.counts.shape[0]
        # One after the other: the rounding of their difference would add up.
        total, lost = two_sum(self.total, jnp.where(there, entry, 0))
        total, lost_too = two_sum(total, -self.of(client))
        return ClientTable(
            self.written(),
            self.counts.at[client].add(1, mode="drop"),
            total,
            self.error + (lost + lost_too),
            client,
            entry,
        )

    def averaged(
        self, client: Int[Array, ""], contribution: Float[Array, "..."]
    ) -> "ClientTable":
        """Returns the table with a contribution taken into its client's mean."""
        count = self.counts.at[client].get(mode="fill", fill_value=0) + 1
        old = self.of(client)
        return self.replaced(client, old + (contribution - old) / count)

    def cleared(self, condition: Bool[Array, ""]) -> "ClientTable":
        """Returns the table without entries where a condition holds, else as it is.

        The vectors stay where they are: one without contributions is not looked at.
        """
        counts, total, error = (
            jnp.where(condition, 0, each).astype(each.dtype)
            for each in (self.counts, self.total, self.error)
        )
        return self._replace(counts=counts, total=total, error=error)


def two_sum(
    a: Float[Array, "..."], b: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Returns the rounded sum of two numbers, and what rounding took from it."""
    rounded = a + b
    of_b = rounded - a
    return rounded, (a - (rounded - of_b)) + (b - of_b)
