"""A class, and what a student of it sends."""

from fedlab_nb.data import load
from fedlab_nb.live.classroom.messages import write
from fedlab_nb.live.classroom.room import Room


def a_room(file=None, alpha=0.1):
    return Room(alpha, 20, 0, file)


def a_message(seat, n=6, given=1, model=None):
    """A message of `n` digits of the package, others for each seat."""
    digits, rows = load("digits"), slice(seat * n, (seat + 1) * n)
    return write(
        seat, "Ada", digits.x_train[rows].flatten(1), digits.y_train[rows], range(given), model
    )
