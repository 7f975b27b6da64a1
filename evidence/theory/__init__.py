"""Closed forms of the papers, for tables of the documents and for tests.

No command needs them. `heterogeneity` has workers of different speeds, `pairings`
averaging between random pairs; `fedbcd`, `mapa` (with the laws of its `noise`) and
`adp2sgd` have steps and bounds, `utility` what A(DP)2SGD's noise costs, `smoothing`
what VAFL's noise does to its objective.
"""
