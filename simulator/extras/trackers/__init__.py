"""Trackers: studies for other programs.

For users of TensorBoard, R or Excel. `records` has the exported data of a run: its
resolved scenario, its evaluations with their costs, and its end. `exporter` writes
tables, and `tensorboard` its own format, into a local folder and nowhere else;
`exporter` chooses between them and reports omissions.
"""

from typing import TYPE_CHECKING

from ...parts.attached import Extra
from ...parts.lazy import attach

if TYPE_CHECKING:
    from .exporter import export

EXTRA = Extra(commands=f"{__name__}.commands", outputs=("export-",))

__getattr__, __dir__, __all__ = attach(__name__, __file__)
