"""Pictures as files."""

import pytest

from polyseme.analysis.pictures import KINDS, check_picture, new_figure, save_figure, tidy
from polyseme.errors import OutputError

pytest.importorskip("matplotlib")
BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_says_the_format(tmp_path, kind):
    figure = new_figure(3, 2)
    tidy(figure.subplots(), "title", "across", "up")
    save_figure(figure, tmp_path / f"picture{kind}")
    assert (tmp_path / f"picture{kind}").read_bytes().startswith(BEGINNINGS[kind])
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path):
    with pytest.raises(OutputError, match=r"ends in \.png, \.svg, \.pdf"):
        check_picture(tmp_path / "picture.jpg")
    with pytest.raises(OutputError, match="there is no folder"):
        check_picture(tmp_path / "nowhere" / "picture.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        check_picture(tmp_path / "folder.png")
