"""Laws of durations: options, checks, draws and closed forms.

`base` says what every law is, and what its parameters may be. A law is one class, a
`Law`, and the sampler that it makes. `distributions` has `constant` and all of SciPy's.
"""
