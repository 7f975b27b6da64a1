"""USPS: `part` (options and files), `record`, `standin`."""
