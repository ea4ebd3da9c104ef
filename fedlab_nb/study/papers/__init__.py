"""The papers' main tables: what was published, the same methods run here, and which orderings agree.

    fl.reproduce("fedlpa:1")                                  at classroom scale, on the digits, ten seeds
    fl.reproduce("fens:1", stored=True)                       the results that came with the package
    fl.reproduce("coboosting:1", scale="paper", dataset="cifar10")

published   the tables as data: one TOML file a table in this folder     cells       what is run for each number
orderings   every pair of methods within a column, and its verdict       measures    which number is read off a run
reproduction   a table beside its runs, as words, HTML and files         stored      the results that came with the package
"""

from .orderings import VERDICTS, Ordering
from .published import TABLES, PaperTable, paper_table
from .reproduction import Reproduction, reproduce
from .summary import PaperTables, paper_tables
