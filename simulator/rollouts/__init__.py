"""Asynchronous reinforcement learning: who samples, queues and trains when.

- `world`: options, random numbers, both players, their record and its measures.
- `scenario`: a world of samples alone; `recording` plays and writes it.
- `protocol`, `timeline`: the same world as the protocol `rollouts` of a study that
  learns, whose algorithm is `algorithms.policy_gradient`.
- `logs`: worlds that are fitted to the log of a real system.
"""
