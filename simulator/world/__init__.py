"""The world in virtual time on SimPy: clients, their cycle, and their incidents.

The first floor, which depends on no feature:

- `world`: events in virtual time, the clients, and their shared resources.
- `clients`: entries of a scenario; `delays`: the laws of their stages, and draws of
  those, in seconds or integer ticks; `workload`: the work of a job.
- `cycle`: idle, read, download, compute and upload, one after the other; `selection`:
  who begins.
- `protocol`: the base of every protocol; `recorders`: its rows; `laws`: durations;
  `streams`: keyed random numbers.
- `feature`: the interface of options; `features`: those of a scenario.

Features, one file each, and their bases:

- `links`: clients' own and shared links, the server's queue, and budgets of messages;
  `slowdowns` and `power`: how long computing takes; `local_steps`: how much.
- `presence` (`availability`): joining, leaving, crashing; `faults`:
  messages that are lost or arrive twice; `planned`: cycles in which that may happen.
- `concurrency`, `preferences`, `answers`: who may work, and the reasons for it.

Nothing in here imports JAX or pandas, or depends on a protocol.
"""
