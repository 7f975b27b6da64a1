"""The base of every component of a scenario.

- `base`: configurations, parts that a scenario chooses by name, and their entries that
  name files; `catalogue` lists parts, `attached` finds those of extras, `plugins` those
  of others.
- `metrics`: the base of every metric and loss, at home in `problem`.
- `errors`, `messages`: mistakes of a user's, each in one line.
- `expressions`: arithmetic in `m` and `M`; `stop`: the end of a run.
"""
