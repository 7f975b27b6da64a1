"""Characters of a text in blocks: `part` (options), `record`, the text that ships."""
