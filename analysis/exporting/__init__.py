"""Studies for other programs: CSV tables, TensorBoard, Weights & Biases, MLflow.

`records` says what a run exports: its resolved scenario, its evaluations with what they
cost, and where it ended. Each other module writes one format, into a local folder and
nowhere else; `exporter` chooses between them and says what was left out.
"""

from analysis.exporting.exporter import TARGETS, Exported, export

__all__ = ["TARGETS", "Exported", "export"]
