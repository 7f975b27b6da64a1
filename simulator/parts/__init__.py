"""The base of every part of a scenario.

- `base`: configurations, parts that a scenario chooses by name, and their entries that
  name files; `catalogue` lists parts, `attached` finds those of extras, `plugins` those
  of others.
- `metrics`: what every metric and loss is, at home in `problem`.
- `errors`, `messages`: mistakes of a user's, each in one line.
- `expressions`: arithmetic in `m` and `M`; `stop`: the end of a run.
"""
