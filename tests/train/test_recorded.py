"""What a recording leaves behind that needs no GPU to be seen."""

import warnings

import pytest
import torch

from teeter.train.recorded import _in_one_order


@pytest.mark.parametrize("mode", ["default", "warn", "error"])
def test_torch_is_as_it_was(mode):
    before = torch.get_deterministic_debug_mode()
    try:
        torch.set_deterministic_debug_mode(mode)
        known = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
        with pytest.raises(RuntimeError, match="killed"), _in_one_order():
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.utils.deterministic.fill_uninitialized_memory
            raise RuntimeError("killed")
        assert known == (torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory)
    finally:
        torch.set_deterministic_debug_mode(before)


def test_only_what_torch_says_of_order_is_silenced():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with _in_one_order():
            warnings.warn("x has no kernel, but you set 'torch.use_deterministic_algorithms(True)'", stacklevel=1)
            warnings.warn("something else", stacklevel=1)
    assert [str(each.message) for each in heard] == ["something else"]
