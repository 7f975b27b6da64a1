"""Policy gradients under staleness.

`part` has the options, the prompts and the metric; `policies` draws actions, and weighs
samples of other policies; `kernel` takes the steps.
"""
