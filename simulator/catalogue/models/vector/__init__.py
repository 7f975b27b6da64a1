"""A vector of weights without a model of ours."""
