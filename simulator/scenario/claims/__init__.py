"""Claims: what a source says of a study, as data to judge the finished study by.

`base` has what all kinds have in common, and the types of their entries. Each kind is a
file of `analysis.claims`: its entries, what they must be, and its judge.
"""

from .base import ORIGINS, AnyClaim, Claim, is_at, read

__all__ = ["ORIGINS", "AnyClaim", "Claim", "is_at", "read"]
