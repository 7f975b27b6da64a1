"""Tests. A regular package, because Ciw installs one of this name."""
