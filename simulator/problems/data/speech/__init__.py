"""Speech: `part` (options and files), `utterances` and their pieces, `standin`."""
