"""Virtual time on SimPy: laws of durations, clients and their cycle.

The places of what is still to come: links, availability and faults are stages of
`world.world.World`, each with a law and a stream of its own.
"""
