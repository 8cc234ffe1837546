"""One thread a test process: two of them share two cores, and small tensors gain nothing from more."""

import torch

torch.set_num_threads(1)
