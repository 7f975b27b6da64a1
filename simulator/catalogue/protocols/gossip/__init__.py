"""Gossip: its options, its workers, and their recorder."""

from .gossip import Gossip

__all__ = ["Gossip"]
