"""Studies for other programs: CSV tables, TensorBoard, Weights & Biases.

`records` says what a run exports: its resolved scenario, its evaluations with what they
cost, and where it ended. Each other module writes one format, into a local folder and
nowhere else, by what `boards` asks of it; `exporter` chooses between them and says what
was left out, `tracking` tells them of a study while it is run.
"""

from .exporter import TARGETS, Exported, export
from .tracking import BOARDS, Tracker

__all__ = ["BOARDS", "TARGETS", "Exported", "Tracker", "export"]
