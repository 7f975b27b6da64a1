"""Enemies that learn from wrong labels."""

from typing import Any, Literal

import numpy as np

from .poison import Poison, PoisonPart


class LabelFlip(PoisonPart):
    """Local steps, of enemies on their own samples with class C - 1 - y for y.

    Their work and what they send is honest otherwise. Training losses of enemies are on
    the wrong labels.

    Source: Fang et al., Local Model Poisoning Attacks to Byzantine-Robust Federated
    Learning (2020), section 4.1.
    """

    kind: Literal["label_flip"] = "label_flip"  # pyright: ignore

    def poison(self, setup: Any) -> Poison:
        """Returns the labels of all training rows, those of enemies flipped."""
        owned, data = self.owned(setup), setup.shares.data
        y, flags = data.y_train, owned.reshape(-1, *(1,) * (data.y_train.ndim - 1))
        return Poison(np.where(flags, data.num_classes - 1 - y, y))
