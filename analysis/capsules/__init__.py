"""Studies as capsules: what it takes to repeat them, and to compare.

`contents` collects the files of a capsule, with the digest of each trace; `packing`
packs, unpacks and checks them; `comparing` says what a repetition found else.
`anonymous` leaves out, and searches for, what names an author.
"""

from .comparing import Repetition, compare
from .packing import Capsule, read, write

__all__ = ["Capsule", "Repetition", "compare", "read", "write"]
