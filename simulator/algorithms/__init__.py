"""Update rules, one family a file: `init`, `step` and `read_out`, pure and vmappable."""
