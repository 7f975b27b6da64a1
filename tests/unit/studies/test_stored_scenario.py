"""A study's own copy of its scenario: read back, it is the same study."""

from pathlib import Path

import pytest

from stalesim.analysis import tables
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.cycle import Cycle
from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.world.protocol import Protocol
from stalesim.simulator.world.recorders.recorder import Recorder
from stalesim.simulator.world.world import World
from tests.commands import invoked
from tests.support import everything, played

TRAINED = """name: t
problem: {data: {kind: digits, limit: 100}, partition: {kind: iid, clients: 4}}
clients: {compute: {law: expon}}
protocol: {kind: synchronous}
algorithm: {kind: fed_avg, learning_rate: 0.5, batch_size: 16, local_epochs: 1}
stop: {time: 2}
evaluate: {every: {time: 2}}
"""
INHERITING = (
    TRAINED
    + """sweep: {algorithm.learning_rate: [0.1, 1]}
variants:
  FedAvg: {}
  FedBuff:
    protocol: {kind: buffered, buffer_size: 2}
    algorithm: {kind: fed_buff, inherit: true}
"""
)
DROPPING = (
    TRAINED
    + """sweep:
  clients: {none: {}, lossy: {groups: {a: {number: 2}, b: {number: 2}}}}
"""
)


def written(text: str, folder: Path) -> Path:
    (path := folder / "s.yaml").write_text(text)
    return path


def test_a_variant_that_inherits_a_swept_key_can_be_continued(tmp_path: Path) -> None:
    path, folder = written(INHERITING, tmp_path), tmp_path / "t"
    assert invoked("run", path, "-o", folder, "--no-plots", "-j", 1).exit_code == 0
    stored = load(folder).manifest["scenario"]["variants"]["FedBuff"]["algorithm"]
    assert "step_size" not in stored
    assert stored["batch"] == 16
    assert invoked("resume", folder, "--no-plots").exit_code == 0


def test_clients_may_be_swept_and_divided(tmp_path: Path) -> None:
    path, folder = written(DROPPING, tmp_path), tmp_path / "t"
    assert invoked("run", path, "-o", folder, "--no-plots", "-j", 1).exit_code == 0
    assert "lossy" in invoked("tables", folder).stdout
    assert invoked("report", folder).exit_code == 0
    assert len(tables.results(load(folder))) == 2
    assert read(path).name == "t"


class InPairs(Protocol):
    """Gathers two contributions without saying so."""

    kind: str = "in_pairs"

    def play(self, world: World, recorder: Recorder) -> None:
        def arrive(client: int) -> None:
            if recorder.num_buffered:
                recorder.commit((client,))
            else:
                recorder.contribute(client)
            cycle.again(client)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()


def test_contributions_without_gathering_are_refused() -> None:
    clients = Clients(compute=Constant(value=(1, 1.5)))
    with pytest.raises(UserError, match="must have gathers return True"):
        everything(played(InPairs(), clients, 2, time=9))
