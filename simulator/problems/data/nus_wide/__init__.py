"""NUS-WIDE: `part` (options and files), `standin`."""
