"""Laws of durations that not every world needs, one per file."""
