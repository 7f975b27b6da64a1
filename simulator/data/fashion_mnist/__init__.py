"""Fashion-MNIST: `part` (options; files as `idx` reads them), `record`, `standin`."""
