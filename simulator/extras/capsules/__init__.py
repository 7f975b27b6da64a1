"""Capsules: studies in one file each, for others to repeat and compare.

`contents` collects the files of a capsule, with the digest of each trace; `packing`
packs, unpacks and checks them, and finds the differences of a repetition. `anonymous`
omits, and searches for, names of authors. `commands` has `stalesim capsule` and
`stalesim rerun`.
"""

from typing import TYPE_CHECKING

from ...parts.attached import Extra
from ...parts.lazy import attach

if TYPE_CHECKING:
    from .packing import Capsule, Repetition, compare, read, write

EXTRA = Extra(commands=f"{__name__}.commands", outputs=("capsule.zip",))

__getattr__, __dir__, __all__ = attach(__name__, __file__)
