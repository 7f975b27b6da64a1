"""ModelNet40 in 12 views: `part` (options and files), `renderings` (their format)."""
