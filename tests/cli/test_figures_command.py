"""`dendritree figures`: two files, whole, in the format asked for."""

import pytest
import torch

from dendritree.cli import main


@pytest.mark.parametrize(("name", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_papers_two_figures_are_drawn(name, start, tmp_path, capsys):
    before = torch.get_rng_state()
    assert main(["figures", "--out", str(tmp_path / "new" / "folder"), "--format", name, "--dark"]) == 0
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"paper-masks.{name}",
        f"paper-neuron.{name}",
    ]
    printed = capsys.readouterr().out
    for path in (tmp_path / "new" / "folder").iterdir():
        assert path.read_bytes().startswith(start)
        assert str(path) in printed
    assert torch.equal(before, torch.get_rng_state())


def test_a_format_that_nobody_draws_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["figures", "--out", str(tmp_path), "--format", "gif"])
    assert end.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
