"""Claims: what a source says of a study, as data to judge the finished study by.

One file for each kind: its entries, what they must be, and the functions in
`analysis.claims` that measure and judge it, named as text, because a scenario is read
without pandas. `base` has what all kinds have in common.
"""

from .base import ORIGINS, AnyClaim, Claim, is_at, read

__all__ = ["ORIGINS", "AnyClaim", "Claim", "is_at", "read"]
