"""Figures show themselves in notebooks, also if pyplot was not imported."""

from __future__ import annotations

import pickle
import struct

from matplotlib.text import Text

import banditune as bt
from helpers.example_results import make_comparison, make_curve


def read_size(png):
    """Width and height of a PNG picture."""
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_a_figure_shows_a_picture_of_twice_its_size():
    png, size = bt.plot(make_curve())._repr_png_()
    assert size == {"width": 720, "height": 420}
    assert read_size(png) == (1440, 840)


def test_the_same_result_always_shows_the_same_picture():
    first, second = (bt.plot(make_curve())._repr_png_() for _ in range(2))
    assert first == second


def test_a_figure_can_be_pickled():
    figure = bt.plot(make_curve())
    assert pickle.loads(pickle.dumps(figure))._repr_png_() == figure._repr_png_()


def test_names_with_dollar_signs_are_shown_as_they_are():
    figure = bt.plot(make_comparison("$a", "b$"))
    texts = [text for text in figure.findobj(Text) if "$" in text.get_text()]
    assert texts
    assert not any(text.get_parse_math() for text in texts)
    assert figure._repr_png_()[0]
