"""A lab's views in a test: each picture is drawn, without an error and as a vector picture, and says what it shows."""


def picture_of(panel, name, setting="digits, α = 0.1"):
    """The picture of a view; `setting`: words of its alternative text, "" of one that stands for no run."""
    picture = panel.show(name)
    assert panel.error == "" and picture is not None, (name, panel.error[-400:])
    assert setting in picture.alt and picture.sentence.endswith("."), picture
    assert "nan" not in picture.sentence + str(picture.table), picture
    assert panel.views[name].frame.value.startswith("<svg")
    return picture


def sentence_of(panel, name, setting="digits, α = 0.1"):
    """The sentence of a view that has a table, too."""
    picture = picture_of(panel, name, setting)
    assert picture.table
    return picture.sentence


def look_at(panel, client=-1, klass=-1):
    """Choose a client and a class; -1: all of them."""
    panel.views.client.value, panel.views.klass.value = client, klass
