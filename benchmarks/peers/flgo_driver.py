"""FLGo: asynchronous logistic regression by its FedAsync server, on the CPU.

    python flgo_driver.py DATA.npz CLIENTS BATCH UPDATES

Its usual client, without the proximal term of FedProx, takes one local step a job;
delays are whole ticks of its clock. Some updates before the clock starts import what is
imported late; nothing is evaluated and nothing is printed.
"""

import contextlib
import importlib
import io
import os
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reporting

DATA, CLIENTS, BATCH, UPDATES = reporting.arguments()
WARM_UP = 50

CONFIG = f"""
import numpy as np
import torch

held = np.load({DATA!r})
x, y = torch.from_numpy(held["x"]), torch.from_numpy(held["y"].astype(np.int64))
train_data = torch.utils.data.TensorDataset(x, y)
test_data = torch.utils.data.TensorDataset(x[:100], y[:100])
val_data = None


def get_model(*args, **kwargs):
    return torch.nn.Linear(784, 10)
"""


def runner():
    """Returns FLGo's server, ready to run, and the list of arrivals that it fills."""
    import flgo
    import numpy as np
    from flgo.algorithm import asyncbase, fedasync
    from flgo.experiment.logger import BasicLogger
    from flgo.simulator.base import BasicSimulator

    arrivals = []
    draw = np.random.default_rng(1)

    class Server(fedasync.Server):
        def package_handler(self, received):
            arrivals.append(len(received["__cid"]))
            return super().package_handler(received)

    class Client(asyncbase.Client):
        pass

    class Algorithm:
        pass

    class Delays(BasicSimulator):
        """The base class, with every client there and a delay of its own each job."""

        def initialize(self, *args, **kwargs):
            everyone = self.all_clients
            self.set_variable(everyone, "prob_available", [1.0] * len(everyone))
            self.set_variable(everyone, "prob_unavailable", [0.0] * len(everyone))

        def update_client_responsiveness(self, client_ids, *args, **kwargs):
            delays = draw.integers(1, 2 * CLIENTS, len(client_ids))
            self.set_variable(client_ids, "latency", delays.tolist())

    class Silent(BasicLogger):
        def initialize(self):
            pass

        def log_once(self, *args, **kwargs):
            pass

    Algorithm.Server, Algorithm.Client = Server, Client
    Path("config.py").write_text(CONFIG)
    sys.path.insert(0, str(Path.cwd()))
    name = flgo.gen_benchmark_from_file("digits_784", "config.py")
    # It draws a picture of the partition for minutes.
    importlib.import_module(name).visualize = lambda *_: None
    partitioner = {"name": "IIDPartitioner", "para": {"num_clients": CLIENTS}}
    flgo.gen_task({"benchmark": name, "partitioner": partitioner}, "task")
    server = flgo.init(
        "task",
        algorithm=Algorithm,
        option={
            "num_rounds": UPDATES, "proportion": 1.0, "num_steps": 1,
            "batch_size": BATCH, "learning_rate": 0.05, "eval_interval": -1,
            "train_holdout": 0.0, "log_level": "ERROR", "no_log_console": True,
            "no_tqdm": True, "torch_num_threads": 1,
        },
        Logger=Silent,
        Simulator=Delays,
    )  # fmt: skip
    return server, arrivals


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            server, arrivals = runner()
            run(server, arrivals, WARM_UP)
            with reporting.Stopwatch() as clock:
                updates = run(server, arrivals, UPDATES)
        os.chdir("/")
    reporting.report(updates, clock, asynchronous=True, package="flgo")


def run(server, arrivals: list[int], updates: int) -> int:
    """Continues until enough updates have arrived; returns their number."""
    arrivals.clear()
    total = 0

    def enough(_) -> bool:
        nonlocal total
        total += sum(arrivals)
        arrivals.clear()
        return total >= updates

    server.register_exit_condition(enough)
    server.run()
    return total


if __name__ == "__main__":
    main()
