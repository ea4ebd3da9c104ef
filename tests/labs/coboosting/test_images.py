"""The gallery of synthetic images: PNG, words and table on hand-made reports, and corners."""

import numpy as np
from lab_views import sound

from fedlab_nb.labs.coboosting.images import gallery
from fedlab_nb.methods.parts.synthesis import SynthesisReport

SETTING = "digits, α = 0.1, 4 clients, seed 0"


def show(shape=(20, 1, 8, 8), classes=10, frame=1, real=True, **more):
    """Three epochs of four are done, all three kept."""
    rng = np.random.default_rng(0)
    report = SynthesisReport(
        synthetic_images=rng.integers(0, 256, (3, *shape)),
        synthetic_labels=rng.integers(0, classes, (3, shape[0])),
        synthetic_epochs=np.arange(1, 4),
        difficulty=np.array([0.6, 0.4, 0.3]),
        disagreement=np.array([0.9, 0.5, 0.1]),
    )
    real = rng.uniform(0, 1, (classes, *shape[1:])) if real else None
    picture = gallery(
        report,
        list(map(str, range(classes))),
        setting=SETTING,
        frame=frame,
        epochs=4,
        real=real,
        **more,
    )
    return sound(picture, SETTING)


def test_the_gallery_says_how_sure_the_teacher_is_and_how_often_the_student_differs():
    picture = show(klass=3)
    assert "probability of 60 %. Before the server model learns from them" in picture.sentence
    assert "it disagrees with the ensemble on 50 % of them." in picture.sentence
    assert "server epoch 2 of 4" in picture.alt
    assert (
        picture.table[0] == {"epoch": 1, "difficulty": "60 %", "disagreement": "90 %"}
        and len(picture.table) == 3
    )
    assert "server epoch 3 of 4" in show(frame=-1).alt


def test_the_gallery_of_many_classes_and_of_features():
    show(shape=(20, 3, 32, 32), classes=100, real=False, klass=99)
    show(shape=(20, 30), classes=3, real=False)
