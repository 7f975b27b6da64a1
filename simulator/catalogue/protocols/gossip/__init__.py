"""Gossip: its options, its workers, and what records them."""

from .gossip import Gossip

__all__ = ["Gossip"]
