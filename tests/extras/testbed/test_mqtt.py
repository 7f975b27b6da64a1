"""Scenarios that are acted out over an MQTT broker, whatever happens to it."""

import importlib.util
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.extras.testbed import broker, fleet, mqtt, wire
from stalesim.simulator.extras.testbed.broker import Mosquitto, address_of
from stalesim.simulator.extras.testbed.mqtt import (
    AGAIN,
    NUMBER,
    Conversation,
    MqttChannel,
    Post,
)
from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.extras.testbed.wire import Envelope, WireError
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.setting import WorldScenario
from tests.extras.testbed.test_faults import whole
from tests.extras.testbed.test_runs import TREE, end_of

SECRET = b"s" * 32


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> list[Mosquitto]:
    """Returns the brokers that are started, as they are."""
    if importlib.util.find_spec("paho") is None:
        pytest.skip("paho-mqtt is not installed")
    try:
        Mosquitto().close()
    except UserError as error:
        pytest.skip(str(error))
    found: list[Mosquitto] = []

    class Seen(Mosquitto):
        def __init__(self) -> None:
            super().__init__()
            found.append(self)

    monkeypatch.setattr(broker, "Mosquitto", Seen)
    return found


def acted_out(
    folder: Path, said: list[str] | None = None, *, kill: Any = (), **changes: Any
) -> Bench:
    world = WorldScenario.model_validate({**TREE, **changes})
    say = (said if said is not None else []).append
    return act_out(Bench(world, folder / "bed", say, broker="start", kill=kill))


@contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Lets something happen during a run, which ends with it and must not fail."""
    over, failed = threading.Event(), []

    def happen() -> None:
        try:
            act(over)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=happen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failed


def await_rows(folder: Path, number: int, over: threading.Event) -> None:
    """Waits until a log has more than some rows."""
    log = folder / "bed" / "log.csv"
    while not (log.exists() and log.read_bytes().count(b"\n") > number):
        assert not over.wait(0.01), "the run has ended before"


def talks(token: str = "t") -> tuple[Conversation, Conversation]:
    how = SECRET, 0, token, 1000
    return Conversation(*how, is_server=False), Conversation(*how, is_server=True)


def test_what_a_broker_loses_or_repeats_arrives_once_and_in_order() -> None:
    client, server = talks()
    sent = [client.seal({"type": "a", "n": n}, bytes(n)) for n in range(4)]
    heard = [server.open(one) for one in (sent[0], sent[0], sent[2], sent[3], sent[0])]
    assert [m and m.header["n"] for m in heard] == [0, None, None, None, None]
    back = server.seal({"type": "b"})
    again = [server.open(one) for one in client.again()]
    assert [m.header.get("n") for m in again if m] == [1, 2, 3, None]
    assert client.kept
    assert client.open(back)
    assert len(client.kept) == 3  # of which the server has not said that it has them
    client.open(server.seal({"type": "b"}))
    assert not client.kept
    server.open(client.seal({"type": "a"}))
    assert not server.kept


def test_what_others_publish_is_none_of_a_conversation() -> None:
    client, server = talks()
    other, _ = talks("u")
    one = client.seal({"type": "a"}, b"123")
    flipped = [
        one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]
        for at in range(NUMBER.size, len(one))
    ]
    wrong = [b"", b"\x16\x03\x01", one[:-1], other.seal({"type": "a"}), *flipped]
    wrong += [NUMBER.pack(AGAIN) + one[NUMBER.size :], server.seal({"type": "a"})]
    for payload in wrong:
        with pytest.raises(WireError):
            server.open(payload)
    assert server.open(one) == Envelope({"type": "a", "come": 0}, b"123")


class Desk:
    """A post whose letters a test puts in and sees."""

    def __init__(self, *_: Any) -> None:
        self.arrived: deque[tuple[str, bytes]] = deque()
        self.sent: list[tuple[str, bytes]] = []
        self.away_since = None

    def poll(self, seconds: float) -> None:
        del seconds

    def publish(self, topic: str, payload: bytes) -> None:
        self.sent.append((topic, payload))

    def close(self) -> None:
        pass


class Office:
    """The server's side of a run of two clients, without a broker.

    Its first client has said that it is here, with the token t.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker, "Post", Desk)
        monkeypatch.setattr(broker, "extra", lambda *_: None)
        self.said: list[str] = []
        how = "h:1", SECRET, 2, 1000, self.said.append, list
        self.lines = broker.MqttChannels(*how)
        self.desk: Any = self.lines._post
        self.run = self.lines.joining["run"]
        self.client, _ = talks()
        here = self.client.seal({"type": "here"})
        assert [c for c, _ in self.heard("up/0/t", here)] == [0]

    def heard(self, topic: str, payload: bytes) -> fleet.Received:
        """Returns what is heard of one payload."""
        self.desk.arrived.append((f"{self.run}/{topic}", payload))
        return self.lines.poll(0)


def test_a_client_does_not_speak_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    office = Office(monkeypatch)
    own = office.client.seal({"type": "ready"})
    assert office.heard("up/1/t", own) == []
    assert office.said == ["a message was refused: its topic is that of another client"]
    ((client, message),) = office.heard("up/0/t", own)
    assert (client, message.header["type"]) == (0, "ready")


@pytest.mark.parametrize(
    "topic", ["", "a", "up/\u0663/t", "up/-1/t", f"up/{'9' * 5000}/t"]
)
def test_a_hostile_topic_is_one_line(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(monkeypatch)
    office.desk.arrived.append((topic, office.client.seal({"type": "ready"})))
    assert office.lines.poll(0) == []
    assert office.said == ["a message was refused: its topic is none of this run"]


def test_a_topic_that_is_no_text_is_none_of_a_run() -> None:
    client = pytest.importorskip("paho.mqtt.client")
    post = Post({}, [], lambda: None)
    post._arrives(None, None, client.MQTTMessage(0, b"\xff"))
    assert list(post.arrived) == [("", b"")]


def test_who_repeats_what_asks_has_little_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    office, now = Office(monkeypatch), [100.0]
    monkeypatch.setattr(mqtt.time, "monotonic", lambda: now[0])
    office.lines.send(0, {"type": "welcome"})
    *_, asks = office.client.again()
    before = len(office.desk.sent)
    for _ in range(50):
        assert office.heard("up/0/t", asks) == []
    assert len(office.desk.sent) == before + 1
    now[0] += 2 * mqtt.RETRY_S  # what was asked meanwhile is not forgotten
    office.lines.poll(0)
    office.lines.poll(0)
    assert len(office.desk.sent) == before + 2
    assert office.client.open(office.desk.sent[-1][1])
    assert not office.said


def test_who_calls_all_clients_has_little_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(mqtt, "Post", Desk)
    monkeypatch.setattr(mqtt.time, "monotonic", lambda: now[0])
    line = MqttChannel({}, "r", SECRET, 0, 1000)
    desk: Any = line._post
    for _ in range(50):
        desk.arrived.append(("r/down", b""))
        assert line.wait(0) is None
    assert len(desk.sent) == 2  # that it is here, and what asks
    now[0] += 2 * mqtt.RETRY_S
    assert line.wait(0) is None
    assert len(desk.sent) == 4


@pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "asynchronous"},
        {"kind": "bounded", "staleness_bound": 1},
    ],
    ids=lambda protocol: protocol["kind"],
)
def test_a_run_over_a_broker_is_whole_and_leaves_nothing(
    protocol: dict[str, Any], tmp_path: Path, brokers: list[Mosquitto]
) -> None:
    found = acted_out(tmp_path, protocol=protocol)
    assert end_of(found.timeline)["stop"] == "commits"
    assert len(whole(found.timeline, tmp_path)) >= 12
    assert brokers[0].process.poll() is not None
    assert not Path(brokers[0]._folder.name).exists()


@pytest.mark.parametrize(
    ("kind", "commits"), [("asynchronous", 210), ("synchronous", 70)]
)
def test_a_broker_restarts_twice_and_the_run_goes_on(
    kind: str, commits: int, tmp_path: Path, brokers: list[Mosquitto]
) -> None:
    killed = []

    def kill_twice(over: threading.Event) -> None:
        for rows in (10, 40):
            await_rows(tmp_path, rows, over)
            killed.append(brokers[0].process.pid)
            brokers[0].process.kill()

    with meanwhile(kill_twice):
        found = acted_out(tmp_path, protocol={"kind": kind}, stop={"commits": commits})
    assert len(set(killed)) == 2
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    assert len(log) == 210
    assert set(log["outcome"]) == {"applied"}
    jobs = found.timeline.table("jobs")
    assert not jobs.duplicated(["client", "job"]).any()
    assert found.timeline.table("incidents").empty


def test_a_run_whose_broker_does_not_return_ends_with_one_line(
    tmp_path: Path, brokers: list[Mosquitto], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "AWAY_S", 0.3)
    monkeypatch.setattr(Mosquitto, "keep", lambda self: None)

    def kill(over: threading.Event) -> None:
        await_rows(tmp_path, 10, over)
        brokers[0].process.kill()

    said: list[str] = []
    with meanwhile(kill):
        found = acted_out(tmp_path, said, stop={"commits": 10**6})
    assert len(said) == 1
    assert "the broker at 127.0.0.1:" in said[0]
    assert found.interrupted
    assert end_of(found.timeline)["stop"] == "interrupted"
    assert len(whole(found.timeline, tmp_path)) > 9


def test_a_client_that_is_killed_is_missed_and_comes_back(
    tmp_path: Path, brokers: list[Mosquitto]
) -> None:
    found = acted_out(tmp_path, kill=("1@0.1+0.1", "2@0.15"), stop={"time": 2.5})
    assert end_of(found.timeline)["stop"] == "time"
    whole(found.timeline, tmp_path)
    incidents = found.timeline.table("incidents")
    known = set(zip(incidents["client"], incidents["incident"], strict=True))
    assert (2, "LEFT") in known
    assert (2, "REJOINED") not in known
    last = found.timeline.table("jobs").groupby("client")["read_time"].max()
    assert last[1] > 0.2


def test_strangers_on_the_broker_change_nothing_of_a_run(
    tmp_path: Path, brokers: list[Mosquitto]
) -> None:
    """One that knows the password repeats, changes and adds messages of all topics."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    heard, retained = set(), []

    def disturb(over: threading.Event) -> None:
        await_rows(tmp_path, 1, over)
        address = brokers[0].address
        stranger = Client(CallbackAPIVersion.VERSION2)
        stranger.username_pw_set(address["user"], address["password"])

        def hear(client: Client, data: Any, message: Any) -> None:
            retained.append(message.retain)
            if message.payload in heard or len(heard) > 200:
                return
            changed = bytearray(message.payload or b"x")
            changed[-1] ^= 1
            for payload in (message.payload, bytes(changed), b"garbage", b""):
                heard.add(payload)
                client.publish(message.topic, payload)
            run = message.topic.split("/")[1]
            for topic in ("up/9/t", "up/-1/t", "up/0/t", "up", "down"):
                client.publish(f"stalesim/{run}/{topic}", message.payload)

        stranger.on_message = hear
        stranger.connect(address["host"], address["port"])
        stranger.subscribe("stalesim/#")
        while not over.is_set():
            stranger.loop(0.05)
        stranger.disconnect()

    said: list[str] = []
    with meanwhile(disturb):
        found = acted_out(tmp_path, said, stop={"commits": 200})
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    assert set(log["outcome"]) == {"applied"}
    assert set(log["client"]) == {1, 2, 3}
    assert len(heard) > 20
    assert not any(retained)
    assert 1 <= len(said) <= fleet.LINES
    assert all("a message was refused" in line for line in said)


def test_a_client_of_another_version_is_refused_and_one_that_errs_is_dropped(
    tmp_path: Path, brokers: list[Mosquitto], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of three clients is played here, and knows the secret."""
    failed: list[BaseException] = []

    def play(joining: dict[str, Any]) -> None:
        try:
            how = joining["broker"], joining["run"], bytes.fromhex(joining["secret"])
            seal = wire.Session.seal

            def of_version_9(*args: Any, **named: Any) -> bytes:
                frame = bytearray(seal(*args, **named))
                frame[4:6] = b"\x00\x09"
                return bytes(frame)

            with monkeypatch.context() as patched:
                patched.setattr(wire.Session, "seal", of_version_9)
                old = MqttChannel(*how, 2, joining["most"])
            assert old.wait(1.0) is None
            line = MqttChannel(*how, 2, joining["most"])
            welcome = line.wait(30)
            assert welcome is not None
            assert welcome.header["type"] == "welcome"
            line.send({"type": "ready"})
            while (message := line.wait(30)) and message.header["type"] == "go":
                line.send({"type": "read", "number": message.header["number"]})
            line.send({"type": "nonsense"})
            message = line.wait(30)
            assert message is not None
            assert message.header["type"] == "end"
        except BaseException as error:
            failed.append(error)

    def begin(self: Any, joining: dict[str, Any], num_clients: int) -> None:
        self._joining = joining
        play_it = threading.Thread(target=play, args=(joining,), daemon=True)
        play_it.start()
        for client in range(num_clients - 1):
            self.start(client)

    monkeypatch.setattr(fleet.ClientProcesses, "begin", begin)
    said: list[str] = []
    found = acted_out(tmp_path, said, stop={"commits": 200})
    assert not failed
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    assert set(log.loc[log["outcome"] == "applied", "client"]) == {1, 2}
    assert sum("it speaks version 9, and we 1" in line for line in said) == 1
    assert sum("client 3 says 'nonsense'" in line for line in said) == 1


def test_a_broker_that_is_not_there_or_refuses_is_named_in_one_line(
    tmp_path: Path, brokers: list[Mosquitto], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, one = WorldScenario.model_validate(TREE), Mosquitto()
    where = f"127.0.0.1:{one.address['port']}"
    tries = iter(range(100))

    def refused(address: str) -> str:
        with pytest.raises(UserError) as error:
            act_out(Bench(world, tmp_path / str(next(tries)), broker=address))
        return str(error.value)

    monkeypatch.setattr(broker, "CONNECT_S", 5.0)
    monkeypatch.setenv("STALESIM_BROKER", "a:b")
    try:
        said = refused(where)
    finally:
        one.close()
    begin = f"the broker at {where} must let us in, but does not"
    assert said.startswith(f"{begin} (Not authorized)")
    monkeypatch.setattr(broker, "CONNECT_S", 0.2)
    said = refused(where)
    assert said.startswith(begin)
    assert "\n" not in said


def test_a_missing_mosquitto_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(UserError, match=r"install it \(apt install mosquitto\), or"):
        Mosquitto()


@pytest.mark.parametrize("text", ["", "host", ":1883", "h:0", "h:70000", "h:x"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--broker must be start or HOST:PORT, got"):
        address_of(text)


def test_credentials_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = {"host": "h", "port": 1883}
    monkeypatch.delenv("STALESIM_BROKER", raising=False)
    assert address_of("h:1883") == nobody
    monkeypatch.setenv("STALESIM_BROKER", "u:p:@w")
    assert address_of("h:1883") == {**nobody, "user": "u", "password": "p:@w"}
