"""Content of the generated pages: tables of formulas, and of exchanges in studies."""
