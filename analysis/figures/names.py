"""File names of figures."""

import re


def plain(name: str) -> str:
    """Returns a user's name as any file system takes it; empty if nothing is left."""
    return re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:80]
