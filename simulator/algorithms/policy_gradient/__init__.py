"""Policy gradients under staleness.

`part` (options), `prompts`, `policies`, `supervised` (start), `estimate`, `kernel`.
"""
