"""pfl: rounds of federated averaging with one local step a user. Synchronous only.

    python pfl_driver.py DATA.npz CLIENTS BATCH UPDATES

A user's samples are in memory, and its data set is the batch of the round: pfl itself
would go through all of them. Nothing is evaluated but the first round.
"""

import logging
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
sys.path.insert(0, str(Path(__file__).parent))
import reporting

DATA, CLIENTS, BATCH, UPDATES = reporting.arguments()

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel

WARM_UP = 2


class Logistic(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(784, 10)

    def loss(self, x, y):
        return torch.nn.functional.cross_entropy(self.linear(x), y)

    def metrics(self, x, y):
        return {}


def users() -> FederatedDataset:
    """Returns a data set per user, of a batch that each visit draws again."""
    with np.load(DATA) as held:
        x, y = torch.from_numpy(held["x"]), torch.from_numpy(held["y"]).long()
    shares = torch.arange(len(y)).tensor_split(CLIENTS)
    own = [(x[ids], y[ids]) for ids in shares]
    generator = torch.Generator().manual_seed(1)

    def visit(user: int) -> Dataset:
        xs, ys = own[user]
        ids = torch.randint(len(ys), (BATCH,), generator=generator)
        return Dataset([xs[ids], ys[ids]], user_id=str(user))

    sampler = get_user_sampler("minimize_reuse", list(range(CLIENTS)))
    return FederatedDataset(visit, sampler)


def main() -> None:
    torch.set_num_threads(1)
    module, data = Logistic(), users()
    model = PyTorchModel(
        module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    backend = SimulatedBackend(training_data=data, val_data=data)

    def rounds(number: int) -> None:
        FederatedAveraging().run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=number,
                evaluation_frequency=number + 1,
                train_cohort_size=CLIENTS,
                val_cohort_size=0,
            ),
            backend=backend,
            model=model,
            model_train_params=NNTrainHyperParams(
                local_num_epochs=None,
                local_num_steps=1,
                local_learning_rate=0.05,
                local_batch_size=BATCH,
            ),
        )

    rounds(WARM_UP)
    number = -(-UPDATES // CLIENTS)
    with reporting.Stopwatch() as clock:
        rounds(number)
    reporting.report(number * CLIENTS, clock, asynchronous=False, package="pfl")


if __name__ == "__main__":
    main()
