"""Update rules, one family a file: pure, vmappable `init`, `step` and `read_out`."""
