"""The privacy theory of the A(DP)2SGD paper.

- `lemmas`: workers, samples, steps and bounds of a run, and its divergences.
- `theorem2`: the noise for an epsilon, and the epsilon of a noise.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4 and its appendix.
"""
