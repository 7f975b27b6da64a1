"""Policy gradients under staleness: options, `prompts`, `estimate`, `kernel`."""
