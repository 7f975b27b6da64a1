"""Every mistake in a world is one line: the file, the line, what, and what to do."""

from pathlib import Path

import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import read_any

WORLD = """name: x
clients:
  number: 4
  compute: {{law: expon}}
  {}
protocol: {{kind: asynchronous}}
stop: {{time: 5}}
"""
MIXTURE = "idle: {law: mixture, of: [{law: expon}], weights: [1, 2]}"
MARKOV = "idle: {law: markov, of: [{law: expon}], transition: [[0.5]]}"
ON_OFF = "availability: {kind: onoff, on: {law: expon}, off: {law: expon}}"
STANDING = "crashes: {after: {law: constant, value: 0}, down: {law: expon}}"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (MIXTURE, r"clients.idle must have as many weights as laws \(1\), got 2"),
        (MARKOV, "transition rows that add up to 1, got 0.5 in row 1"),
        (ON_OFF, "got 'onoff'; did you mean 'on_off'"),
        (STANDING, "clients.crashes.after must take time"),
        ("loss: {chance: 1.0, timeout: 2}", "clients.loss.chance must be < 1"),
        ("groups: {a: {number: 4, compue: {}}}", "did you mean 'compute'"),
        ("groups: {a: {number: 4, upload: {bandwith: 3}}}", "did you mean 'bandwidth'"),
        ("upload: {bandwidth: -3}", "clients.upload.bandwidth must be > 0, got -3"),
        ("upload: {latency: {law: norm}}", "durations >= 0, got 'norm'"),
        (
            "upload: {latency: 100ms}",
            r"latency: \{law: constant, value: 0.1\}, a number",
        ),
        ("leave: -5", "clients.leave must be >= 0, got -5"),
        ("join: {law: gamma}", "clients.join.a is missing"),
        ("idle: {law: truncated, of: {law: expon}, high: 0}", "high must be > 0"),
        (
            "slowdowns: [{kind: named, clients: [9], factor: 2}]",
            "clients from 1 to 4, got 9",
        ),
    ],
)
def test_one_line_says_what_and_where(tmp_path: Path, entry: str, message: str) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(WORLD.format(entry))
    with pytest.raises(ScenarioError, match=message) as caught:
        read_any(file)
    said = str(caught.value)
    assert said.startswith(f"{file}:5: ")
    assert "\n" not in said


def test_groups_count_the_clients(tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(WORLD.format("groups: {a: {number: 3}, b: {number: 2}}"))
    told = (
        r"3: clients\.number must be the 5 clients of all groups, got 4; leave it out"
    )
    with pytest.raises(ScenarioError, match=told):
        read_any(file)


def test_a_server_does_not_gossip(tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    text = WORLD.format("idle: {law: expon}").replace("asynchronous", "gossip")
    file.write_text(text + "server: {service: {law: expon}}\n")
    with pytest.raises(ScenarioError, match="server must not be set for the protocol"):
        read_any(file)
