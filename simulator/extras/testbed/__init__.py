"""Testbeds: real processes act a scenario out in real time, over TCP or MQTT.

For users who want to see the effect of real messages, scheduling and computing on a
simulated world. The server runs the protocol by its own code; a client is a process.

- `running`: from a scenario to a log, its timeline, and the study that replays it.
- `timeline`: one run, emulated on demand.
- `world`: a clock that follows the real one, and the world whose clients are processes.
- `fleet`: the server's conversations over TCP, and the clients' processes.
- `broker`: the server's conversations over MQTT.
- `client`: a client's process.
- `wire`, `mqtt`: messages, in a form common to both sides.
- `learner`: the server's model; `gradients`: a real one, and its clients' computation.
- `commands`: `stalesim testbed`.
"""

from ...parts.attached import Extra

EXTRA = Extra(commands=f"{__name__}.commands")
