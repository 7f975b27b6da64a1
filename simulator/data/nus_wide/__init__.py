"""NUS-WIDE: `part` (options and files), `record`, `standin`."""
