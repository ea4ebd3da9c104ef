"""The papers' tables: five claims to bet on, and how they came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..kit import Card
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

if TYPE_CHECKING:
    from ...papers.all_tables import PaperTables
    from ...papers.claims import Claim

# (table, the method that is compared with the table's own one): weak rivals, strong ones, and some of another kind.
BETS = (
    ("fens:1", "FedAvg"),
    ("fens:10", "SCAFFOLD"),
    ("coboosting:1", "FedDF"),
    ("coboosting:3", "DENSE"),
    ("fedlpa:1", "DENSE"),
)


def select_claims_to_bet_on(claims: Sequence[Claim]) -> list[Claim]:
    """Select the claims of BETS, in their order, from `fl.paper_tables().claims`."""
    by_name = {}
    for claim in claims:
        for method in (claim.better, claim.worse):
            by_name[claim.table.name, method] = claim
    return [by_name[bet] for bet in BETS]


def describe_numbered_bet(bet_number_from_1: int, claim: Claim) -> str:
    """Describe a bet: '1. FENS is ahead of FedAvg (fens:1)'."""
    return f"{bet_number_from_1}. {claim.better} is ahead of {claim.worse} ({claim.table.name})"


def show_claims_to_bet_on(claims: Sequence[Claim]) -> Card:
    """Show the five claims, without their outcomes."""
    lines = []
    for number, claim in enumerate(select_claims_to_bet_on(claims), 1):
        lines.append(f"{describe_numbered_bet(number, claim)}.")
    return Card("worked", "\n".join(lines), "As published")


def count_bets_that_hold(claims: Sequence[Claim]) -> int:
    """Count the claims of the five that hold in the package's runs."""
    return sum(claim.outcome == "holds" for claim in select_claims_to_bet_on(claims))


def show_outcomes_of_bets(claims: Sequence[Claim]) -> Card:
    """Show the five claims, and how each came out."""
    lines = []
    for number, claim in enumerate(select_claims_to_bet_on(claims), 1):
        lines.append(f"{describe_numbered_bet(number, claim)}: {claim.outcome}.")
    return Card("worked", "\n".join(lines), "In our runs")


SHOWN_CLAIMS = slice(
    7, None, 60
)  # four of all claims, from several papers and with several outcomes


def show_how_claims_are_compared(tables: PaperTables) -> Card:
    """Show what a few claims compare, in the paper and here: a line for each."""
    lines = []
    for number, text in enumerate(tables.describe_claims()[SHOWN_CLAIMS], 1):
        lines.append(f"{number}. {text[0].upper()}{text[1:]}")
    return Card("worked", "\n".join(lines), "Paper and package")
