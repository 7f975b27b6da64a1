"""The base of every part of a scenario.

- `base`: configurations; `parts`: parts that a scenario chooses by name; `catalogue`
  lists them, `plugins` finds those of others.
- `metrics`, `losses`: what every metric and loss is, at home in `problem`.
- `errors`, `messages`, `text`: mistakes of a user's, each in one line.
- `expressions`: arithmetic in `m` and `M`; `files`: entries that name files; `stop`:
  the end of a run.
"""
