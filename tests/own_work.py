"""Work of clients as a user writes it, for tests: NumPy, and PyTorch where it is."""

from functools import cache
from typing import Any

import numpy as np


def softmax_gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
    """Returns the gradient and the mean loss of a linear model `[C, F + 1]`."""
    ones = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    z = ones @ w.T
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    each = np.arange(len(y))
    loss = -np.log(p[each, y]).mean()
    p[each, y] -= 1
    return p.T @ ones / len(y), loss


def linear(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes the local steps of our linear model."""
    del client, job
    total, losses, here = np.zeros_like(weights), [], weights
    for batch in rows:
        gradient, loss = softmax_gradient(here, batch.x, batch.y)
        total, here = total + gradient, here - rows.step_size * gradient
        losses.append(loss)
    return total, {"loss": np.mean(losses)}


def flat(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Does the same for a vector of any model."""
    message, info = linear(weights.reshape(10, -1), client, job, rows)
    return message.reshape(-1), {**info, "seed": rows.seed, "client_seen": client}


def zeros(seed: int) -> np.ndarray:
    """Returns the vector of a linear model of digits at the start."""
    assert 0 <= seed < 2**32
    return np.zeros(650)


def measured(weights: np.ndarray, test: Any) -> dict[str, Any]:
    """Returns two metrics, and one that nobody asked for."""
    gradient, loss = softmax_gradient(weights.reshape(10, -1), test.x, test.y)
    ones = np.concatenate([test.x, np.ones((len(test.x), 1))], axis=1)
    right = (ones @ weights.reshape(10, -1).T).argmax(axis=1) == test.y
    slope = np.linalg.norm(gradient)
    return {"test_loss": loss, "test_accuracy": right.mean(), "slope": slope}


@cache
def of_torch(kind: str, features: int = 64) -> Any:
    """Returns work by PyTorch on weights of our layout: linear, `cnn` or `dense`."""
    import torch

    from stalesim.torch import worker

    def linear_module() -> Any:
        return torch.nn.Linear(features, 10)

    nn = torch.nn

    def dense_module() -> Any:
        return nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))

    def cnn_module() -> Any:
        first = nn.Conv2d(1, 4, 2), nn.ReLU(), nn.MaxPool2d(2)
        second = nn.Conv2d(4, 3, 2), nn.ReLU(), nn.MaxPool2d(2)
        images, last = nn.Unflatten(1, (1, 8, 8)), (nn.Flatten(), nn.Linear(3, 10))
        return nn.Sequential(images, *first, *second, *last)

    loss = torch.nn.functional.cross_entropy
    modules = {"cnn": cnn_module, "dense": dense_module}
    if kind in modules:
        return worker(modules[kind], loss)
    made = worker(linear_module, loss)

    def on_matrix(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
        vector = np.concatenate([weights[:, :-1].reshape(-1), weights[:, -1]])
        message, info = made(vector, client, job, rows)
        matrix, bias = np.split(message, [10 * features])
        columns = [matrix.reshape(10, -1), bias[:, None]]
        return np.concatenate(columns, axis=1), info

    return on_matrix


def torch_linear(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes the local steps of our linear model by PyTorch."""
    return of_torch("linear")(weights, client, job, rows)


def torch_cnn(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes the local steps of our CNN by PyTorch, whose weights have our order."""
    return of_torch("cnn")(weights, client, job, rows)


def torch_mnist(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes the local steps of our linear model of MNIST by PyTorch."""
    return of_torch("linear", 784)(weights, client, job, rows)


def torch_dense(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes the local steps of our dense network of MNIST by PyTorch."""
    return of_torch("dense")(weights, client, job, rows)


def nothing(weights: np.ndarray, client: int, job: int, rows: Any) -> Any:
    """Makes no step, in no time."""
    del client, job, rows
    return np.zeros_like(weights), {"loss": 1.0}
