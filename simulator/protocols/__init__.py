"""Coordination protocols on SimPy, one a file: who talks to whom when.

The function `play(config, world, recorder)` of a protocol starts its events. Protocols:
`asynchronous`, `bounded`, `buffered`, `centralised`, `cyclic`, `gossip` (with `pairs`),
`rounds`, `synchronous` and `t_synchronous`. None of them knows an algorithm.

Timelines: `recorder`, `plain_recorder` and `gossip_recorder` write them;
`played.Played` plays a protocol and gives its timeline in chunks, `replayed.Replayed`
gives a recorded one, and `kept` shares one between the runs of a study.
"""
