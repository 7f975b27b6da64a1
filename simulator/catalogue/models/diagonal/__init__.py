"""A model with one weight a column: with squared errors, a quadratic."""
