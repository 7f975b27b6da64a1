"""FedJAX: rounds of FedAvg with one local step a client, on the CPU. Synchronous only.

    python fedjax_driver.py DATA.npz CLIENTS BATCH UPDATES

Two rounds before the clock starts compile what it compiles.
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
sys.path.insert(0, str(Path(__file__).parent))
import reporting

DATA, CLIENTS, BATCH, UPDATES = reporting.arguments()

import fedjax
import jax
import numpy as np
from fedjax.algorithms import fed_avg

WARM_UP = 2


def main() -> None:
    with np.load(DATA) as held:
        images, labels = held["x"].reshape(-1, 28, 28, 1), held["y"]
    shares = np.array_split(np.arange(len(labels)), CLIENTS)
    clients = [
        fedjax.ClientDataset({"x": images[own], "y": labels[own]}) for own in shares
    ]
    model = fedjax.models.emnist.create_logistic_model(only_digits=True)
    algorithm = fed_avg.federated_averaging(
        fedjax.model_grad(model),
        client_optimizer=fedjax.optimizers.sgd(0.05),
        server_optimizer=fedjax.optimizers.sgd(1.0),
        client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
            batch_size=BATCH, num_epochs=None, num_steps=1
        ),
    )
    key = jax.random.PRNGKey(1)  # noqa: TID251 (what FedJAX takes)
    state = algorithm.init(model.init(key))

    def rounds(number: int):
        nonlocal state
        for _ in range(number):
            keys = jax.random.split(key, CLIENTS)
            everyone = [(name, data, keys[name]) for name, data in enumerate(clients)]
            state, _ = algorithm.apply(state, everyone)
        jax.block_until_ready(state.params)

    rounds(WARM_UP)
    number = -(-UPDATES // CLIENTS)
    with reporting.Stopwatch() as clock:
        rounds(number)
    reporting.report(number * CLIENTS, clock, asynchronous=False, package="fedjax")


if __name__ == "__main__":
    main()
