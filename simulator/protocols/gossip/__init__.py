"""Gossip: its options, its graphs and mixing, its workers, and what records them."""

from .gossip import Gossip

__all__ = ["Gossip"]
