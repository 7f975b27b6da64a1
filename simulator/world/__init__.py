"""The world in virtual time on SimPy: clients, their cycle, and what happens to them.

The first floor, which knows no feature:

- `world`: events in virtual time, the clients, and what they share.
- `clients`: entries of a scenario; `delays`: the laws of their stages, and draws of
  those, in seconds or integer ticks; `workload`: what a job has to do.
- `cycle`: idle, read, download, compute and upload, one after the other; `selection`:
  who begins.
- `protocol`: what every protocol is; `recorders`: its rows; `laws`: durations;
  `streams`: keyed random numbers.
- `feature`: the interface of options; `features`: which ones a scenario asks for.

Features, one file each, and what they need:

- `links`: clients' own and shared links, the server's queue, and budgets of messages;
  `slowdowns` and `power`: how long computing takes; `local_steps`: how much.
- `presence` (`availability`): joining, leaving, crashing; `faults`:
  messages that are lost or arrive twice; `planned`: cycles in which that may happen.
- `concurrency`, `preferences`, `answers`: who may work, and on what that depends.

Nothing in here imports JAX or pandas, or knows a protocol.
"""
