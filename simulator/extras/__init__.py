"""Extras: abilities that most users never need, each in its own folder.

You can take any of these folders away, with `tests/extras/NAME` and
`docs/extras/NAME.md`, and the rest works as before: `.ci/apart NAME` shows it. The
core never imports an extra, and an extra imports no other one.
`simulator.config.attached` finds an extra by the `EXTRA` of its package.
"""
