"""USPS: `part` (options and files), `standin`."""
