"""Claims of a source on a study, as data to judge the finished study by.

`base` has the common part of all kinds, and the types of their entries. Each kind is a
file of `analysis.claims`: its entries, their rules, and its judge.
"""

from .base import ORIGINS, AnyClaim, Claim, is_at, read

__all__ = ["ORIGINS", "AnyClaim", "Claim", "is_at", "read"]
