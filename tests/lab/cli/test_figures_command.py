"""`dendritree figures`: two complete files in the requested format."""

import pytest
import torch


@pytest.mark.parametrize(("name", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_papers_two_figures_are_drawn(name, start, tmp_path, call):
    before = torch.get_rng_state()
    status, printed, _ = call("figures", "--out", tmp_path / "new" / "folder", "--format", name, "--dark")
    assert status == 0
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"paper-masks.{name}",
        f"paper-neuron.{name}",
    ]
    for path in (tmp_path / "new" / "folder").iterdir():
        assert path.read_bytes().startswith(start)
        assert str(path) in printed
    assert torch.equal(before, torch.get_rng_state())
