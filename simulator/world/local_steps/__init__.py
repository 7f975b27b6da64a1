"""Rules by which the local steps of jobs change during a run.

- `base`: what a rule is.
- `schedule`: by virtual time; no numerics are needed.
- `adacomm`: by the progress of the objective.
"""
