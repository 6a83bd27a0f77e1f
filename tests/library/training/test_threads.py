"""`fit` trains on the threads that its config names, and leaves torch's number as it was."""

import pytest
import torch

from dendritree import FitConfig, fit
from dendritree.models import Perceptrons
from dendritree.training.threads import torch_threads


@pytest.mark.parametrize(("options", "expected"), [({}, 1), ({"threads": 2}, 2), ({"threads": None}, 3)])
def test_fit_trains_on_the_threads_of_its_config(options, expected):
    seen = []
    data = torch.randn(40, 6), torch.arange(40) % 3
    with torch_threads(3):
        config = FitConfig(epochs=1, **options)
        fit(
            Perceptrons(6, 3, output="logits"), data, config, callbacks=[lambda _: seen.append(torch.get_num_threads())]
        )
        assert torch.get_num_threads() == 3
    assert seen == [expected]
