"""Policy gradients under staleness.

`part` has the options, the prompts and the metric; `policies` says what is drawn, and
how samples of other policies count; `kernel` takes the steps.
"""
