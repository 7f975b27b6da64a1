"""Speech: `part` (options and files), `utterances`."""
