"""Which operations a piece of code runs."""

from torch.utils._python_dispatch import TorchDispatchMode


class Launched(TorchDispatchMode):
    """The names of all operations that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
