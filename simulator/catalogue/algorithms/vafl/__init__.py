"""VAFL: its options (`part`), its kernel, what the server stores, and ages."""
