"""Speech: `part` (options and files), `utterances`, `record`, `standin`."""
