"""The gallery of synthetic images: picture, texts and table of reports made by hand, and extreme cases."""

import numpy as np
from lab_views import check_picture

from fedlab_nb.labs.coboosting.images import draw_synthetic_images
from fedlab_nb.methods.parts.synthesis import SynthesisReport

SETTING = "digits, α = 0.1, 4 clients, seed 0"


def draw_gallery(shape=(20, 1, 8, 8), classes=10, frame=1, has_real=True, class_index=None):
    """Draw the gallery of a run of which three of four epochs are done, and all three kept."""
    rng = np.random.default_rng(0)
    report = SynthesisReport(
        synthetic_images=rng.integers(0, 256, (3, *shape)),
        synthetic_labels=rng.integers(0, classes, (3, shape[0])),
        synthetic_epochs=np.arange(1, 4),
        difficulty=np.array([0.6, 0.4, 0.3]),
        disagreement=np.array([0.9, 0.5, 0.1]),
    )
    real = rng.uniform(0, 1, (classes, *shape[1:])) if has_real else None
    picture = draw_synthetic_images(
        report,
        [str(c) for c in range(classes)],
        setting=SETTING,
        stored_epoch_index=frame,
        planned_epochs_or_0_if_ended=4,
        real_image_per_class=real,
        selected_class=class_index,
    )
    return check_picture(picture, SETTING)


def test_the_gallery_says_how_sure_the_teacher_is_and_how_often_the_student_differs():
    picture = draw_gallery(class_index=3)
    assert "the ensemble gives the wanted class 60 % on average" in picture.sentence
    assert "still disagrees with it on 50 % of them." in picture.sentence
    assert "server epoch 2 of 4" in picture.alt
    assert picture.table[0] == {"epoch": 1, "difficulty": "60 %", "disagreement": "90 %"}
    assert len(picture.table) == 3
    assert "server epoch 3 of 4" in draw_gallery(frame=-1).alt


def test_the_gallery_of_many_classes_and_of_features():
    draw_gallery(shape=(20, 3, 32, 32), classes=100, has_real=False, class_index=99)
    draw_gallery(shape=(20, 30), classes=3, has_real=False)
