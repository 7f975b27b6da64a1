"""Preferences: which of the clients who could be selected are.

- `base`: what a preference is, and the clients that it chooses from.
- `power_of_choice`: the largest losses among some candidates.
- `oort`: by what a client's samples are worth and how long it takes.
"""
