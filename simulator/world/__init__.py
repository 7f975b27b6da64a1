"""The world in virtual time on SimPy: clients, their cycle, and what happens to them.

- `world`: the clock, the groups of clients and all shared parts; `groups`: one group.
- `cycle`: idle, read, download, compute, upload and service of a client.
- `delays`: the durations of one stage, in seconds or integer ticks.
- `links`: shared bottleneck links, and a server with a queue.
- `availability`, `slowdowns`: parts; `presence`: joining, leaving, and times by turns;
  `faults`: messages that are lost or arrive twice.
- `selection`: the next client, where only some work; `message_budget`: a limit on
  messages.

Nothing in here imports JAX or pandas, or knows a protocol.
"""
