"""A scenario in real time: real processes that send real messages on this machine."""
