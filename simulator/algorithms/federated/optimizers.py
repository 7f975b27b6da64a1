"""The server's optimizers, by optax: directions, to be multiplied by a step size."""

import optax

from simulator.algorithms.federated.part import Optimizer


def transformation(config: Optimizer) -> optax.GradientTransformation:
    """Returns what makes a direction of a commit's mean contribution.

    Source: Reddi et al., Adaptive Federated Optimization (2021), Algorithm 2.
    """
    first, second, small = config.decay, config.second_decay, config.small
    match config.kind:
        case "momentum":
            return optax.trace(decay=first)
        case "adam":
            return optax.scale_by_adam(b1=first, b2=second, eps=small)
        case "yogi":
            return optax.scale_by_yogi(b1=first, b2=second, eps=small)
        case "adagrad":
            return optax.scale_by_rss(initial_accumulator_value=0.0, eps=small)
        case "rmsprop":
            return optax.scale_by_rms(decay=second, eps=small)
