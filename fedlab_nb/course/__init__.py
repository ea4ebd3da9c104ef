"""Predict, check, hint, solution: what a lesson needs beside its panels.

    from fedlab_nb.course import predict; from fedlab_nb.course.heterogeneity import lesson
    guess = predict("How accurate will one round of FedAvg be?", unit="%")   # a form; or guess.commit(40)
    Snapshot(panel, after=guess)                  # folded until the guess is made or skipped; so are pictures and cards
    guess.reveal(29)                                                          # names the gap
    lesson.q1.form()      # question, answer box, buttons; or lesson.q1.check(2.8), .hint(), .hint(2), .solution()
    score()                                       # how near the guesses were, how many exercises are right

`problem.py` decides (`build.py` where the answer is a function), `view.py` shows, `prediction.py` records a guess,
`score.py` adds up. Each lesson has a file with its worked numbers and what judges its exercises; their texts stand
beside it in a TOML file, which `exercises.py` reads. Left out: accounts, saved scores and anything that leaves the
machine.
"""

from .kit.prediction import Prediction, predict
from .kit.problem import NumberProblem, Problem, RecordProblem, Verdict
from .kit.score import Score as score
from .kit.view import Snapshot

__all__ = ["NumberProblem", "Prediction", "Problem", "RecordProblem", "Snapshot", "Verdict", "predict", "score"]
