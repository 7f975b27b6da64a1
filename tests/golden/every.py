"""Every small run that is pinned: those of the core, and of the extras there are."""

from tests.golden import cases
from tests.support import of_extras

CASES = cases.CASES | of_extras("CASES")
