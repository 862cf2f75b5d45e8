"""Saving plots as files."""

import pytest

from polyseme.errors import OutputError
from polyseme.plots import KINDS, check_picture, new_figure, save_figure, tidy

pytest.importorskip("matplotlib")
BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_says_the_format(tmp_path, kind):
    figure = new_figure(3, 2)
    tidy(figure.subplots(), "title", "across", "up")
    save_figure(figure, tmp_path / f"picture{kind}")
    assert (tmp_path / f"picture{kind}").read_bytes().startswith(BEGINNINGS[kind])
    assert len(list(tmp_path.iterdir())) == 1


def test_words_are_drawn_as_they_are(tmp_path):
    figure = new_figure(3, 2)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], label="$^$")
    axes.set_yticks([0, 1], ["_{$", "$$"])
    axes.legend()
    tidy(axes, "uses of $^$", "$_", "up")
    save_figure(figure, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


def test_letters_that_the_font_lacks_are_one_warning(tmp_path):
    figure = new_figure(3, 2)
    tidy(figure.subplots(), "\U000f1234 and \U000f1235", "across", "up")  # of private use: no font has them
    with pytest.warns(UserWarning, match="the font lacks \U000f1234 \U000f1235 and shows boxes") as caught:
        save_figure(figure, tmp_path / "picture.png")
    assert len(caught) == 1


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path):
    with pytest.raises(OutputError, match=r"ends in \.png, \.svg, \.pdf"):
        check_picture(tmp_path / "picture.jpg")
    with pytest.raises(OutputError, match="there is no folder"):
        check_picture(tmp_path / "nowhere" / "picture.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        check_picture(tmp_path / "folder.png")
