"""Whether what a source says holds here: a verdict on each claim of a study.

`judged` says what a verdict is, `speed`, `finals`, `sweeps` and `slopes` judge one kind
of claim each, and `findings` applies them to a study.
"""

from analysis.claims.findings import Finding, evaluate
from analysis.claims.judged import FAILS, HOLDS, LEAST, OPEN

__all__ = ["FAILS", "HOLDS", "LEAST", "OPEN", "Finding", "evaluate"]
