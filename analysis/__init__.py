"""Reads traces and runs nothing: statistics, frames, figures, claims, theory.

Arrays below (`statistics`, `theory`), labelled frames above (`frames`, `curves`,
`targets`, `staleness`, `claims`, `summary`), figures on top (`figures`, `report`).
"""
