"""The observatory of time: every method with a proved time, in random worlds."""
