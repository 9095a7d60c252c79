"""What chips cost to rent: price books of named, dated offers, own prices over them, and the one that fits a run."""

from chipwise.prices.book import STALE_DAYS, PriceBook, listed
from chipwise.prices.currency import read_rates
from chipwise.prices.money import (
    Price,
    Quote,
    chip_hours,
    day_of,
    is_stale,
    own_in_words,
    price_of,
    prices_in_words,
    quote,
    run_cost,
)
from chipwise.prices.own import OwnPrices, laid_over, read_own

__all__ = [
    "STALE_DAYS",
    "OwnPrices",
    "Price",
    "PriceBook",
    "Quote",
    "chip_hours",
    "day_of",
    "is_stale",
    "laid_over",
    "listed",
    "own_in_words",
    "price_of",
    "prices_in_words",
    "quote",
    "read_own",
    "read_rates",
    "run_cost",
]
