"""The papers' tables: what was published, the same methods run here, and which orderings agree.

    fl.reproduce("fedlpa:1")                                  at classroom scale, on the digits, ten seeds
    fl.reproduce("fens:1", stored=True)                       the results that came with the package
    fl.reproduce("coboosting:1", scale="paper", dataset="cifar10")

published      the tables as data, a TOML file each; every pair of methods within a column, with its verdict
cells          which runs are made for each number
comparison     the conditions of a published number and of ours, and the differences between them
claims         a paper's own method beside each other row, and whether our runs agree
reproduction   `reproduce`, its result, and how the result is printed
all_tables     `paper_tables`: all tables, and the list of every table and figure
"""

from .all_tables import PaperTables, paper_tables
from .cells import list_points_of_stored_tables
from .published import (
    TABLES,
    VERDICTS,
    Ordering,
    PaperTable,
    describe_tables_and_figures_not_run,
    load_paper_table,
)
from .reproduction import Reproduction, reproduce
