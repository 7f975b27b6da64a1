"""The six views of UCI's multiple features, and a data set of them."""

from .. import names
from ..base import Dataset
from ..classes import Samples
from ..parts import Data
from ..split import divided

VIEWS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
"""Number of columns of each view, in the order of the columns: Fourier coefficients,
profile correlations, Karhunen-Loeve coefficients, averages of pixels in windows of
2 x 3, Zernike moments, and morphological features."""
NUM_CLASSES = 10


def dataset(config: Data, name: str, rows: Samples) -> Dataset:
    """Returns a data set of the six views.

    Args:
        config: Options of the set.
        name: Name in tables and figures.
        rows: Features and digits.

    Raises:
        ScenarioError: The limit or the test fraction is too high, or the classes do not
            exist.
    """
    return divided(
        config,
        name,
        rows,
        num_classes=NUM_CLASSES,
        columns=tuple(
            column
            for view, width in VIEWS.items()
            for column in names.counted(view, width)
        ),
        views=tuple(view for view, width in VIEWS.items() for _ in range(width)),
    )
