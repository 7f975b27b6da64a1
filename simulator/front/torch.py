"""Work of clients by PyTorch, for `simulate(..., work=worker(Net, loss))`.

PyTorch is an optional package: `pip install "stalesim[torch]"`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from stalesim.simulator.parts.extras import extra
from stalesim.simulator.problem.own_work import JobRows, RowBatch

torch = extra("torch", "torch", "stalesim.torch")
vectors = extra("torch.nn.utils", "torch", "stalesim.torch")

TESTED = 1024
"""Test rows whose outputs are computed at once."""


class worker(NamedTuple):  # noqa: N801 (called like a function)
    """Trains and measures a PyTorch module: clients make steps of plain SGD.

    The weights are the module's parameters, end to end; they start as PyTorch draws
    them, by a seed of each run. Modules compute in the scenario's `engine.precision`,
    on one thread of the CPU, which PyTorch then keeps to in this process.

    Attributes:
        module: Class of the module, or a function that makes one, without arguments.
        loss: Function of outputs and targets to a mean loss, such as
            `torch.nn.functional.cross_entropy`.
        optimizer: Function of parameters that makes an optimiser for each job, such as
            `lambda p: torch.optim.Adam(p, lr=1e-3)`; by default plain SGD by the
            scenario's local step size.
    """

    module: Callable[[], Any]
    loss: Callable[[Any, Any], Any]
    optimizer: Callable[[Any], Any] | None = None

    def __call__(
        self, weights: Float[np.ndarray, " P"], client: int, job: int, rows: JobRows
    ) -> tuple[Float[np.ndarray, " P"], dict[str, float]]:
        """Returns the sum of a job's gradients, and its mean loss.

        With an optimiser of one's own: the way that the weights went, over the step
        size, by which the server multiplies it.

        Raises:
            ValueError: The module keeps numbers of its own from job to job.
        """
        module, parameters, buffers = self._holding(weights)
        # `torch.manual_seed` keeps a traceback for each device that has not been used.
        torch.default_generator.manual_seed(rows.seed)
        module.train()
        before = [(id(buffer), buffer._version) for buffer in buffers]
        step = self.optimizer and self.optimizer(parameters)
        total, losses = torch.zeros(weights.size, dtype=_dtype(weights)), []
        for batch in rows:
            for p in parameters:
                p.grad = None
            x, y = _tensor(batch.x, weights), _tensor(batch.y, weights)
            loss = self.loss(module(x), y)
            loss.backward()
            losses.append(loss.item())
            if step is not None:
                step.step()
                continue
            with torch.no_grad():
                ways = [
                    torch.zeros_like(p) if p.grad is None else p.grad
                    for p in parameters
                ]
                total += vectors.parameters_to_vector(ways)
                for p, way in zip(parameters, ways, strict=True):
                    p -= rows.step_size * way
        if [(id(buffer), buffer._version) for buffer in module.buffers()] != before:
            raise ValueError(
                "its buffers changed in training, as those of BatchNorm do, and would "
                "go from client to client; normalise layers or groups"
            )
        if step is not None:
            moved = torch.from_numpy(weights.copy()) - _weights(module)
            total = moved / rows.step_size
        return total.numpy(), {"loss": float(np.mean(losses))}

    def weights(self, seed: int) -> Float[np.ndarray, " P"]:
        """Returns the module's parameters at the start.

        Args:
            seed: Seed of PyTorch's generator.

        Raises:
            TypeError: There is a module in place of a function that makes one.
        """
        if isinstance(self.module, torch.nn.Module):
            raise TypeError(
                "worker(module, ...) takes the module's class or a function that makes "
                "it, so that each run starts by its own seed, not a module; give its "
                "class"
            )
        torch.default_generator.manual_seed(seed)
        return _weights(self.module()).numpy()

    def evaluate(
        self, weights: Float[np.ndarray, " P"], test: RowBatch
    ) -> dict[str, float]:
        """Returns `test_loss`, and of classes `test_accuracy`."""
        (module, *_), y = self._holding(weights), _tensor(test.y, weights)
        module.eval()
        pieces = [slice(i, i + TESTED) for i in range(0, len(y), TESTED)]
        with torch.no_grad():
            outputs = torch.cat(
                [module(_tensor(test.x, weights, piece)) for piece in pieces]
            )
            found = {"test_loss": self.loss(outputs, y).item()}
        if outputs.ndim == y.ndim + 1 and not y.is_floating_point():
            right = (outputs.argmax(dim=1) == y).double()
            found["test_accuracy"] = right.mean().item()
        return found

    def _holding(self, weights: Float[np.ndarray, " P"]) -> tuple[Any, list, list]:
        """Returns the module with these weights, its parameters and its buffers."""
        module, parameters, buffers = _made(self.module, _dtype(weights))
        vectors.vector_to_parameters(torch.from_numpy(weights.copy()), parameters)
        return module, parameters, buffers


@lru_cache(maxsize=4)
def _made(module: Callable[[], Any], dtype: object) -> tuple[Any, list, list]:
    """Returns the module that all jobs of a process work with, on one thread."""
    # Runs share the cores, and sums of several threads differ in last digits.
    torch.set_num_threads(1)
    made = module().to(dtype)
    return made, [*made.parameters()], [*made.buffers()]  # listing them takes long


def _weights(module: Any) -> Any:
    return vectors.parameters_to_vector(module.parameters()).detach()


def _dtype(weights: np.ndarray) -> Any:
    return torch.from_numpy(weights[:0].copy()).dtype


def _tensor(given: Any, weights: np.ndarray, piece: slice = slice(None)) -> Any:
    """Returns some rows of arrays: numbers in the type of the weights, others long."""
    if isinstance(given, dict):
        return {name: _tensor(each, weights, piece) for name, each in given.items()}
    whole = given.dtype.kind != "f"
    return torch.from_numpy(given[piece].astype(np.int64 if whole else weights.dtype))
