"""Laws of durations: their options (`parts`), what is impossible (`checks`), draws."""
