"""Gossip: its options, its graphs and mixing, its workers, and what records them."""

from simulator.protocols.gossip.gossip import Gossip

__all__ = ["Gossip"]
