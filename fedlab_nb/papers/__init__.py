"""The papers' tables: what was published, the same methods run here, and which orderings agree.

    fl.reproduce("fedlpa:1")                                  at classroom scale, on the digits, ten seeds
    fl.reproduce("fens:1", stored=True)                       the results that came with the package
    fl.reproduce("coboosting:1", scale="paper", dataset="cifar10")

published      the tables as data, a TOML file each, and every pair of methods within a column with its verdict
cells          what is run for each number
comparison     what a published number and ours were measured under, and in what the two differ
claims         a paper's own method beside each other row, and how that comes out
reproduction   `reproduce`, what it gives, and how that reads
all_tables     `paper_tables`: all of them, and the list of every table and figure
"""

from .all_tables import PaperTables, paper_tables
from .cells import list_points_of_stored_tables
from .published import (
    TABLES,
    VERDICTS,
    Ordering,
    PaperTable,
    list_table_items_not_run,
    load_paper_table,
)
from .reproduction import Reproduction, reproduce
