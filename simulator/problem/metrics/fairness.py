"""Metrics of fairness: the accuracy of one model for each client and each label.

The device finds the accuracy on the test rows of each label. A client's accuracy
follows on the host: the test accuracy for its own mix of labels, the one of its
training rows. So no test row belongs to a client by chance, and clients with few rows
have no noisier numbers than others. If all clients have the same mix of labels, they
all have the same accuracy.
"""

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ...parts.errors import ScenarioError
from ...parts.metrics import CLASSES, ROWS, Each
from .of_model import FUNCTIONS, fraction

if TYPE_CHECKING:
    from ..learning import Shares

ByLabel = Float[np.ndarray, " C"]
"""Accuracy on the test rows of each label; NaN where no test row has it."""
SHARE = 0.1
"""Share of the clients that are the worst decile."""


def label_mix(shares: "Shares") -> Float[np.ndarray, "K C"]:
    """Returns the part of each label in each client's training rows.

    Labels that no test row has are left out: the parts of the others are 1 together.

    Raises:
        ScenarioError: A client has none of the labels of the test rows.
    """
    data = shares.data
    known = np.bincount(data.y_test.reshape(-1), minlength=data.num_classes) > 0
    mix = np.stack(
        [
            np.bincount(data.y_train[pool].reshape(-1), minlength=data.num_classes)
            for pool in shares.pools
        ]
    )
    mix = mix * known
    empty = np.flatnonzero(mix.sum(axis=1) == 0)
    if empty.size:
        raise ScenarioError(
            f"evaluate.metrics must not have client_accuracy where client "
            f"{empty[0] + 1} has no label of the test rows; remove it, or divide the "
            f"data otherwise"
        )
    return mix / mix.sum(axis=1, keepdims=True)


def each_client(mix: Float[np.ndarray, "K C"], by_label: ByLabel) -> np.ndarray:
    """Returns the accuracy of each client, by its mix of labels."""
    return mix @ np.nan_to_num(by_label).astype(np.float64)


def spread(mix: Float[np.ndarray, "K C"], by_label: ByLabel) -> float:
    """Returns the standard deviation over all clients, with divisor K."""
    return float(np.std(each_client(mix, by_label)))


def worst_decile(mix: Float[np.ndarray, "K C"], by_label: ByLabel) -> float:
    """Returns the mean over the worst tenth of the clients, rounded up."""
    found = np.sort(each_client(mix, by_label))
    return float(found[: math.ceil(SHARE * found.size)].mean())


def least(mix: Float[np.ndarray, "K C"], by_label: ByLabel) -> float:
    """Returns the accuracy of the client with the lowest."""
    return float(each_client(mix, by_label).min())


def each_label(mix: Float[np.ndarray, "K C"], by_label: ByLabel) -> ByLabel:
    """Returns the accuracy of each label; NaN where no test row has it."""
    return by_label


_of_labels = partial(fraction, compute=f"{FUNCTIONS}:accuracy_by_label")
_of_clients = partial(_of_labels, needs=(CLASSES, ROWS))
CLIENT_ACCURACY = _of_clients(
    name="client_accuracy",
    of_run=f"{__name__}:each_client",
    each=Each.CLIENT,
    label="Mean test accuracy of clients",
    meaning="mean over clients of the test accuracy for each one's mix of labels",
)
CLIENT_ACCURACY_STD = _of_clients(
    name="client_accuracy_std",
    of_run=f"{__name__}:spread",
    label="Standard deviation of clients' test accuracy",
    higher_is_better=False,
    bounds=(0.0, 0.5),
    meaning="standard deviation over clients of client_accuracy",
)
CLIENT_ACCURACY_WORST_DECILE = _of_clients(
    name="client_accuracy_worst_decile",
    of_run=f"{__name__}:worst_decile",
    label="Test accuracy of the worst tenth of clients",
    meaning="mean over the tenth of the clients (rounded up) with the lowest",
)
CLIENT_ACCURACY_MIN = _of_clients(
    name="client_accuracy_min",
    of_run=f"{__name__}:least",
    label="Lowest test accuracy of a client",
    meaning="lowest client_accuracy of a client",
)
LABEL_ACCURACY = _of_labels(
    name="label_accuracy",
    of_run=f"{__name__}:each_label",
    each=Each.LABEL,
    label="Mean test accuracy of labels",
    meaning="mean over labels of the accuracy on their test rows (balanced accuracy)",
)
