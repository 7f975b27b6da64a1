"""Studies as capsules (RO-Crates): what it takes to repeat them, and to compare.

`contents` collects the files of a capsule, `metadata` describes them, `writing` packs
them, `reading` unpacks and checks them, `comparing` says what a repetition found else.
`digests` tells traces apart by their bytes.
"""

from analysis.capsules.comparing import Repetition, compare
from analysis.capsules.reading import Capsule, read
from analysis.capsules.writing import write

__all__ = ["Capsule", "Repetition", "compare", "read", "write"]
