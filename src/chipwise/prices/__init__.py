"""What chips cost to rent: price books of named, dated offers, and the one that fits a run."""

from chipwise.prices.book import PriceBook, listed
from chipwise.prices.money import STALE_DAYS, Price, Quote, chip_hours, is_stale, price_of, quote, run_cost

__all__ = ["STALE_DAYS", "Price", "PriceBook", "Quote", "chip_hours", "is_stale", "listed", "price_of", "quote",
           "run_cost"]
