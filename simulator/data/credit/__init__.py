"""Default of credit card clients: `part` (options and files), `record`, `standin`."""
