"""The lessons: guesses, exercises and scores, and each lesson's own code.

    from fedlab_nb.course import predict; from fedlab_nb.course.heterogeneity import lesson
    guess = predict("How accurate will one round of FedAvg be?", unit="%")   # a form; or guess.commit(40)
    Snapshot(panel, after=guess)                  # folded until the guess is made or skipped; so are pictures and cards
    guess.reveal(29)                                                          # names the gap
    lesson.q1.form()      # question, answer box, buttons; or lesson.q1.check(2.8), .hint(), .hint(2), .solution()
    score(tell="…")       # how near the guesses were, with a picture to keep; how many exercises are right; a sentence

`kit/problem.py` judges answers; `kit/view.py` displays exercises and guesses, and adds up the score. Each lesson has a
folder with three files. `lesson.md` is the source from which its notebook is made. `lesson.py` has its worked numbers,
and the functions that judge its exercises. `exercises.toml` has the texts of its exercises; `kit/exercises.py` reads
them. There are no accounts and no saved scores, and nothing leaves the machine.
"""

# It comes first and acts when it is imported: the other imports take seconds, and the reader would look at the end of
# the lesson until then.
from . import lesson_page  # noqa: F401
from .kit.problem import NumberProblem, Problem, RecordProblem, Verdict
from .kit.view import Prediction, Score, Snapshot

# The names under which lessons call them.
predict = Prediction
score = Score

# {notebook: folder of its source in course/}: first the numbered lessons of the story, then those of the shelf
COURSE = {
    "1_start_here": "start",
    "2_heterogeneity": "heterogeneity",
    "3_fens": "fens",
    "4_closed_form": "afl",
    "5_send_data": "distilled",
    "6_capstone": "capstone",
    "shelf/averaging_ensembling_distilling": "averaging",
    "shelf/fed_et": "fedet",
    "shelf/co_boosting": "coboosting",
    "shelf/fusefl": "fusefl",
    "shelf/fedlpa": "fedlpa",
    "shelf/names_of_neurons": "matching",
    "shelf/your_own": "your_own",
    "shelf/all_together": "all_together",
    "shelf/masks_and_noise": "masks",
    "shelf/paper_tables": "paper_tables",
}
# {notebook of the shelf: its label in tables}; lessons of the story have their number as label
SHELF_LABELS = {
    "shelf/averaging_ensembling_distilling": "averaging",
    "shelf/fed_et": "Fed-ET",
    "shelf/co_boosting": "Co-Boosting",
    "shelf/fusefl": "FuseFL",
    "shelf/fedlpa": "FedLPA",
    "shelf/names_of_neurons": "names of neurons",
    "shelf/your_own": "your own",
    "shelf/all_together": "all together",
    "shelf/masks_and_noise": "masks and noise",
    "shelf/paper_tables": "paper tables",
}


def get_lesson_label(notebook_path_without_ending: str) -> str:
    """Return what tables call a lesson: "3" for "3_fens", "Fed-ET" for "shelf/fed_et"."""
    return SHELF_LABELS.get(notebook_path_without_ending, notebook_path_without_ending[0])
