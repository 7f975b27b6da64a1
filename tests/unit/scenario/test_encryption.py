"""What encryption costs: arithmetic, virtual time, bytes, hashes and mistakes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.fedbcd.part import FedBcd
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.gossip import Gossip
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.engine.algorithm import ProblemShape
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.privacy.encryption import CKKS, PAILLIER, Ckks, Paillier
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Link
from stalesim.simulator.world.laws.constant import Constant
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.slowdowns import NamedSlowdown
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World
from tests.runs import execute, prepared
from tests.support import everything, played, scenario

SHAPE = ProblemShape(1000, 30, 1, 3, 30, batch=50, num_exchanged=2)
ROUND = {"encrypt_s": 1, "add_s": 0.25, "multiply_s": 0.5, "decrypt_s": 2}
PARTIES = 4
SIZES: dict[str, Any] = {"batch": 17, "step_size": 0.1}
FEDBCD: dict[str, Any] = {
    "clients": {"compute": {"law": "constant", "value": [1, 2, 3, 4]}},
    "protocol": {"kind": "rounds"},
    "algorithm": {"kind": "fed_bcd", "local_steps": 3, **SIZES},
    "stop": {"commits": 4},
    "evaluate": {"every": {"commits": 4}},
}
HEAVY: dict[str, Any] = {"algorithm": {"encryption": {"kind": "ckks", **ROUND}}}
EXCHANGE_S = 1 + (PARTIES - 1) * 0.25 + 0.5 + 2


@pytest.mark.parametrize("key_bits", [1024, 2048, 3072])
def test_a_paillier_ciphertext_has_one_number(key_bits: int) -> None:
    found = Paillier(key_bits=key_bits)  # pyright: ignore
    assert found.costs == PAILLIER[key_bits]
    assert found.costs.ciphertext_bytes == 2 * key_bits // 8  # modulo n squared
    assert found.ciphertexts(7) == 7
    assert found.bytes_of(7) == 7 * found.costs.ciphertext_bytes
    assert found.seconds_of(7, encryptions=1) == 7 * found.costs.encrypt_s


def test_a_ckks_ciphertext_has_4096_numbers() -> None:
    found = Ckks()
    assert found.costs == CKKS
    sizes = [0, 1, 4096, 4097]
    assert [found.ciphertexts(size) for size in sizes] == [0, 1, 1, 2]
    assert found.bytes_of(4097) == 2 * CKKS.ciphertext_bytes
    assert found.seconds_of(4097, decryptions=3) == 2 * 3 * CKKS.decrypt_s


def test_an_exchange_is_encrypted_added_multiplied_and_decrypted() -> None:
    found = Paillier(**ROUND)
    assert found.exchange_s(10, 5) == 10 * (1 + 4 * 0.25 + 0.5 + 2)
    assert found.exchange_s(10, 1) == 0
    assert found.exchange_s(0, 5) == 0
    # 64 numbers of two parties at 2048 bits: 64 (9.7 + 0.014 + 0.45 + 4.6) ms.
    assert Paillier().exchange_s(64, 2) == pytest.approx(0.944896)


def test_single_costs_can_be_given() -> None:
    found = Paillier(key_bits=3072, encrypt_s=0, ciphertext_bytes=900)
    wanted = PAILLIER[3072]._replace(encrypt_s=0, ciphertext_bytes=900)
    assert found.costs == wanted
    other = found.replaced(key_bits=1024)
    assert other.costs.decrypt_s == PAILLIER[1024].decrypt_s
    assert other.costs.ciphertext_bytes == 900


def test_encrypted_messages_weigh_their_ciphertexts() -> None:
    options = {"step_size": 0.1, "batch": 50, "local_steps": 3}
    plain = FedBcd(**options).messages(SHAPE, common=True)
    assert [m.bytes for m in plain] == [4 * 100, 4 * 100]
    for encryption, size in ((Paillier(), 100 * 512), (Ckks(), 332_000)):
        method = FedBcd(**options, encryption=encryption)
        found = method.messages(SHAPE, common=True)
        assert [m.bytes for m in found] == [size, size]
        assert method.overhead_s(SHAPE) == encryption.exchange_s(100, 3)
        assert method.structure() == FedBcd(**options).structure()


@pytest.mark.parametrize("compute_per", ["job", "step", "sample"])
def test_the_overhead_comes_once_a_job(compute_per) -> None:
    clients = Clients(
        compute=Constant(value=(1, 2)),
        compute_per=compute_per,
        slowdowns=(NamedSlowdown(clients=(2,), factor=3.0),),
        upload=Link(latency=Constant(value=0.5)),
    )
    traffic = Workload(4, 4, 2, steps=5, samples=10, overhead_s=0.25)
    plan = SimulatedTimeline(clients, Rounds(), 2, 1, Stop(rounds=2), traffic)
    rows, jobs, _ = everything(plan)
    times = {"job": 1, "step": 5, "sample": 10}[compute_per]
    computing = np.array([times, 6 * times]) + 0.25
    assert rows.time.tolist() == [computing[1] + 0.5, 2 * (computing[1] + 0.5)]
    taken = jobs.computed_time[:2] - jobs.read_time[:2]
    assert taken.tolist() == computing.tolist()


@pytest.mark.parametrize("protocol", [Rounds(), Asynchronous(), Gossip()])
def test_no_job_escapes_the_overhead(protocol) -> None:
    clients = Clients(compute=Constant(value=1))
    stop = Stop(commits=2)
    plain = SimulatedTimeline(clients, protocol, 2, 1, stop, Workload(4, 4, 2))
    heavy = replace(plain, workload=Workload(4, 4, 2, overhead_s=0.3))
    times = [everything(plan)[0].time for plan in (plain, heavy)]
    np.testing.assert_allclose(times[1], 1.3 * times[0])


def test_a_clock_with_an_overhead_does_not_tick() -> None:
    law = Scipy.model_validate({"law": "poisson", "mu": 2, "scale": 0.5, "shift": 1e-6})
    for overhead_s, ticks in ((0, True), (0.3, False)):
        world = World(
            Clients(compute=law), 2, 1, workload=Workload(overhead_s=overhead_s)
        )
        assert (world.tick is not None) == ticks
        assert world.is_plain == ticks


def test_the_overhead_is_part_of_the_hash() -> None:
    plan = played(Rounds(), Clients(compute=Constant(value=1)), 2, rounds=1)
    other = replace(plan, workload=replace(plan.workload, overhead_s=1e-9))
    assert other.digest != plan.digest


@pytest.mark.parametrize("order", ["parallel", "sequential"])
def test_rounds_of_encrypted_exchanges(order: str) -> None:
    tree = merge(FEDBCD, {"protocol": {"order": order}})
    plain, heavy = (
        timeline(Run(0, "base", {}, 0, 1, scenario(tree, more))) for more in ({}, HEAVY)
    )
    assert plain.workload.overhead_s == 0
    assert heavy.workload.overhead_s == EXCHANGE_S
    assert heavy.workload.upload_bytes == heavy.workload.download_bytes == 332_000
    jobs = np.arange(1, 5)  # that follow one another
    wanted = everything(plain)[0].time + jobs * EXCHANGE_S
    assert everything(heavy)[0].time.tolist() == wanted.tolist()


def test_encryption_changes_no_number_of_the_model() -> None:
    runs = [prepared(FEDBCD, more, number=n) for n, more in enumerate(({}, HEAVY))]
    memory, _ = execute(runs)
    plain, heavy = (memory.column("evaluations", "objective", n) for n in (0, 1))
    np.testing.assert_array_equal(plain, heavy)
    bytes_ = [memory.column("evaluations", "upload_bytes", n)[-1] for n in (0, 1)]
    assert bytes_[1] / bytes_[0] == 332_000 / (4 * 17)
