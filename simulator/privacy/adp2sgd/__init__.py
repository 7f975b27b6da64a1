"""The privacy theory of the A(DP)2SGD paper, and numbers for its formulas.

- `setting`: workers, samples, steps and bounds of a run; the published one.
- `lemmas`: divergences of one step, with and without subsampling, and of many.
- `theorem2`: the noise for an epsilon, the epsilon of a noise, and Remark 1.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4 and its appendix.
"""
