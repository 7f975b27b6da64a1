"""Fashion-MNIST: `part` (options; files as `idx` reads them), `standin`."""
