"""What all tests share."""

import os

# One thread per run, as the command line has it; and nothing of the user's cache.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ["MPLBACKEND"] = "Agg"
