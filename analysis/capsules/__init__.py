"""Studies as capsules (RO-Crates): what it takes to repeat them, and to compare.

`contents` collects the files of a capsule, `metadata` describes them, `writing` packs
them, `reading` unpacks and checks them, `comparing` says what a repetition found else.
`digests` tells traces apart by their bytes; `anonymous` leaves out, and searches for,
what names an author.
"""

from .comparing import Repetition, compare
from .reading import Capsule, read
from .writing import write

__all__ = ["Capsule", "Repetition", "compare", "read", "write"]
