"""Trackers: studies for other programs, afterwards or while they are run.

For users of TensorBoard, R or Excel. `records` says what a run exports: its resolved
scenario, its evaluations with what they cost, and where it ended. `exporter` writes
tables, and `tensorboard` its own format, into a local folder and nowhere else;
`exporter` chooses between them and says what was left out, `following` writes for
TensorBoard while another process runs the study.
"""

from typing import TYPE_CHECKING

from ...parts.attached import Extra
from ...parts.lazy import attach

if TYPE_CHECKING:
    from .exporter import export
    from .following import follow

EXTRA = Extra(commands=f"{__name__}.commands", outputs=("export-", "track-"))

__getattr__, __dir__, __all__ = attach(__name__, __file__)
