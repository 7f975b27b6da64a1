"""Laws of durations: options, checks, draws and closed forms.

`base` has the interface of every law, and its parameters. A law is one class, a `Law`,
and the sampler that it makes. `distributions` has `constant` and all of SciPy's.
"""
