"""Tests. A regular package, because Ciw installs one of this name."""

from tests.shapes import checked

__all__ = ["checked"]
