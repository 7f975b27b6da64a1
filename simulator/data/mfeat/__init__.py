"""UCI multiple features: `part` (options and files), `views`, `record`, `standin`."""
