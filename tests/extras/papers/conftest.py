"""What tests of data sets in the core have: an empty data folder, small files."""

from tests.unit.data.conftest import _cache as _cache
from tests.unit.data.conftest import check_files as check_files
from tests.unit.data.conftest import root as root
from tests.unit.data.conftest import write_idx as write_idx
from tests.unit.data.conftest import write_set as write_set
