"""Predict, check, hint, solution: what a lesson needs beside its panels.

    from fedlab_nb.course import predict; from fedlab_nb.course.heterogeneity import lesson
    guess = predict("How accurate will one round of FedAvg be?", unit="%")   # a form; or guess.commit(40)
    Snapshot(panel, after=guess)                  # folded until the guess is made or skipped; so are pictures and cards
    guess.reveal(29)                                                          # names the gap
    lesson.q1.form()      # question, answer box, buttons; or lesson.q1.check(2.8), .hint(), .hint(2), .solution()
    score(tell="…")       # how near the guesses were, with a picture to keep; how many exercises are right; a sentence

`kit/problem.py` decides, `kit/view.py` shows, records guesses and adds up the score. Each lesson has a folder: its
source `lesson.md`, from which its notebook is made, its worked numbers and what judges its exercises (`lesson.py`), and
the exercises' texts (`exercises.toml`), which `kit/exercises.py` reads. Left out: accounts, saved scores and anything
that leaves the machine.
"""

from .kit.problem import NumberProblem, Problem, RecordProblem, Verdict
from .kit.view import Prediction, Score, Snapshot

# What a lesson calls.
predict = Prediction
score = Score

# {notebook: folder of its source, here}
COURSE = {
    "00_start_here": "start", "01_heterogeneity": "heterogeneity", "02_averaging_ensembling_distilling": "averaging",
    "03_fens": "fens", "04_fed_et": "fedet", "05_co_boosting": "coboosting", "06_fusefl": "fusefl",
    "07_fedlpa": "fedlpa", "08_all_together": "all_together", "09_your_own": "your_own", "10_closed_form": "afl",
    "11_names_of_neurons": "matching", "12_send_data": "distilled", "13_capstone": "capstone",
    "paper_tables": "paper_tables",
}  # fmt: skip
