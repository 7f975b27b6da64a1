"""ModelNet40 in 12 views: `part`, `renderings`, `solids`, `standin`, `record`."""
