"""Show and check a lab's views: each picture is drawn without an error, and has a sentence and alternative text."""

from fedlab_nb.plots import render_picture_png

MAX_SENTENCE_LETTERS = 240  # of a sentence: two lines and a half on a laptop


def show_view(panel, name, setting="digits, α = 0.1"):
    """The checked picture of a view.

    setting: words of its alternative text; "" for a picture of no run
    """
    picture = panel.show(name)
    assert panel.error == "" and picture is not None, (name, panel.error[-400:])
    assert setting in picture.alt and picture.sentence.endswith("."), picture
    assert len(picture.sentence) <= MAX_SENTENCE_LETTERS, picture.sentence
    assert "nan" not in picture.sentence + str(picture.table), picture
    frame = panel.views[name].frame
    if picture.scene:
        assert frame.scene["kind"] == picture.scene["kind"]
    else:
        assert frame.value.startswith("<div" if picture.waits else "<svg")
    return picture


def show_sentence(panel, name, setting="digits, α = 0.1"):
    """The sentence of a view, which has a table, too; behind it the exact numbers."""
    picture = show_view(panel, name, setting)
    assert picture.table
    return read_texts(picture)


def read_texts(picture):
    """The sentence of a picture, and the exact numbers that are read on hover."""
    return f"{picture.sentence} {picture.detail}".strip()


def choose_client_and_class(panel, client=-1, class_index=-1):
    """Choose a client and a class; -1: all of them."""
    panel.views.client.value, panel.views.class_index.value = client, class_index


def check_picture(picture, setting, *words):
    """Check that a picture can be drawn, names its setting, and has numbers and these words; returns it."""
    assert render_picture_png(picture).startswith(b"\x89PNG")
    assert setting in picture.alt
    assert picture.sentence in picture.alt
    assert picture.table and "nan" not in read_texts(picture) + str(picture.table)
    assert picture.detail in picture.alt
    texts = read_texts(picture)
    for word in words:
        assert word in texts, texts
    return picture


def find_ends(control):
    """The first and the last value of a menu, or of a slider."""
    if hasattr(control, "options"):
        entries = (control.options[0], control.options[-1])
        return [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
    if hasattr(control, "base"):  # a logarithmic slider
        return [control.base**control.min, control.base**control.max]
    return [control.min, control.max]


def move_each_control_to_both_ends(panel, names, setting="digits, α = 0.1"):
    """With a client and a class chosen, move each control of these views to its ends, and back."""
    choose_client_and_class(panel, client=0, class_index=9)
    for name in names:
        show_view(panel, name, setting)
        for control in panel.lab_views[name].controls:
            if not hasattr(control, "options") and not hasattr(control, "min"):
                continue
            before = control.value
            for end in find_ends(control):
                control.value = end
                show_view(panel, name, setting)
            control.value = before
    choose_client_and_class(panel)
