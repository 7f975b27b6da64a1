"""Laws of durations besides those that every world needs (`world.laws`), one a file."""
