"""Privacy and cost of the server's noise, written from the formulas, one by one."""

from collections import Counter

from mpmath import mp, mpf, ncdf, sqrt


def epsilon(messages: list[tuple[int, int]], client: int, z: float, delta: float):
    """Returns the epsilon of one client, by Dong, Roth and Su (2019), Corollary 2.13.

    Args:
        messages: Client and commit of each message that is in a commit.
        client: The client.
        z: Noise of a sum over the bound of a message.
        delta: Failure probability.
    """
    mp.dps = 40
    commits = Counter(commit for sender, commit in messages if sender == client)
    if not commits:
        return mpf(0)
    # A commit with m messages of the client moves by m bounds: mu = m / z.
    mu = sqrt(sum((mpf(m) / mpf(z)) ** 2 for m in commits.values()))

    def loses(e):
        return ncdf(-e / mu + mu / 2) - mp.exp(e) * ncdf(-e / mu - mu / 2)

    low, high = mpf(0), mpf(1)
    if loses(low) <= delta:
        return low
    while loses(high) > delta:
        high *= 2
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if loses(middle) > delta else (low, middle)
    return high


def pairwise_bits(n: int, m: int, value_bits: int, key: int, share: int):
    """Returns the bits that a member sends and gets, round by round (figure 4)."""
    sent = got = 0
    sent += 2 * key  # round 0: c^PK and s^PK
    for _ in range(n - 1):
        got += 2 * key
    for _ in range(n - 1):  # round 1: shares of s^SK and b for each other member
        sent += 2 * share
        got += 2 * share
    width = value_bits
    while 2 ** (width - value_bits) < n:
        width += 1
    sent += m * width  # round 2: the masked vector
    for _ in range(n):  # round 3: a share of each member's mask
        sent += share
    return sent, got
