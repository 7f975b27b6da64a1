"""Messages that cost less: stages that compress, and one class for each compressor.

`part` (the base, and stages of either direction), `running` (what runs of these), then
the compressors: `quantise`, `sparsify`, `signs`, `low_rank`.
"""
