"""A lab's views in a test: each picture is drawn, without an error and as a vector picture, and says what it shows."""

from fedlab_nb.plots import render_picture_png

MOST_LETTERS = 240  # of a sentence: two lines and a half on a laptop


def picture_of(panel, name, setting="digits, α = 0.1"):
    """The picture of a view; `setting`: words of its alternative text, "" of one that stands for no run."""
    picture = panel.show(name)
    assert panel.error == "" and picture is not None, (name, panel.error[-400:])
    assert setting in picture.alt and picture.sentence.endswith("."), picture
    assert len(picture.sentence) <= MOST_LETTERS, picture.sentence
    assert "nan" not in picture.sentence + str(picture.table), picture
    frame = panel.views[name].frame
    if picture.scene:
        assert frame.scene["kind"] == picture.scene["kind"]
    else:
        assert frame.value.startswith("<div" if picture.waits else "<svg")
    return picture


def sentence_of(panel, name, setting="digits, α = 0.1"):
    """The sentence of a view that has a table, too, and its exact numbers."""
    picture = picture_of(panel, name, setting)
    assert picture.table
    return words_of(picture)


def words_of(picture):
    """The sentence of a picture, and what is read on hover."""
    return f"{picture.sentence} {picture.detail}".strip()


def look_at(panel, client=-1, class_index=-1):
    """Choose a client and a class; -1: all of them."""
    panel.views.client.value, panel.views.class_index.value = client, class_index


def sound(picture, setting, *words):
    """The picture: it can be drawn, names its setting, has numbers, and its sentence, or the exact numbers that one
    reads on hover, have `words`.
    """
    assert render_picture_png(picture).startswith(b"\x89PNG")
    assert setting in picture.alt
    assert picture.sentence in picture.alt
    assert picture.table and "nan" not in words_of(picture) + str(picture.table)
    assert picture.detail in picture.alt
    for word in words:
        assert word in words_of(picture), words_of(picture)
    return picture


def ends(control):
    """The ends of a menu, or of a slider."""
    if hasattr(control, "options"):
        values = [o[1] if isinstance(o, tuple) else o for o in control.options]
        return values[0], values[-1]
    return [
        control.base**end if hasattr(control, "base") else end for end in (control.min, control.max)
    ]


def every_control_at_both_ends(panel, names, setting="digits, α = 0.1"):
    """A client and a class are looked at, and each control of these views goes to its ends, and back."""
    look_at(panel, client=0, class_index=9)
    for name in names:
        picture_of(panel, name, setting)
        for control in (
            c for c in panel.lab_views[name].controls if hasattr(c, "options") or hasattr(c, "min")
        ):
            before = control.value
            for end in ends(control):
                control.value = end
                picture_of(panel, name, setting)
            control.value = before
    look_at(panel)
