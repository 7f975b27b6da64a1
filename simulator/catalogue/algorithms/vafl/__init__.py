"""VAFL: its options (`part`), its kernel, the server's stores, and ages."""
