"""One thread a test process: two of them share two cores, and small tensors gain nothing from more."""

import signal
from importlib.util import find_spec

import torch

torch.set_num_threads(1)

# Whoever starts the tests in the background of a script has interrupts ignored, in all processes that tests start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Kernels for a GPU, which cannot even be imported without Triton; tests/train/test_one_query.py is about them.
collect_ignore = [] if find_spec("triton") else ["src/teeter/train/one_query_kernels.py"]
