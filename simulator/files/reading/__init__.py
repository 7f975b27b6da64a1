"""Files that a run reads: where they are, how large they may be, and tables in them."""
