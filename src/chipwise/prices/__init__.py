"""What chips cost to rent: price books of named, dated offers, own prices over them, and the one that fits a run."""

from chipwise.prices.book import STALE_DAYS, PriceBook, listed
from chipwise.prices.custom_prices import CustomPrices, laid_over, read_custom_prices
from chipwise.prices.fit import Price, Rental, cheapest, cheapest_of, fabric_in_words, price_of, why_no_price
from chipwise.prices.money import (
    Quote,
    chip_hours,
    custom_prices_in_words,
    day_of,
    prices_in_words,
    quote,
    run_cost,
)
from chipwise.prices.record import age_in_days, is_stale, price_record, quote_record
from chipwise.prices.supply import sold, supply

__all__ = [
    "STALE_DAYS",
    "CustomPrices",
    "Price",
    "PriceBook",
    "Quote",
    "Rental",
    "age_in_days",
    "cheapest",
    "cheapest_of",
    "chip_hours",
    "custom_prices_in_words",
    "day_of",
    "fabric_in_words",
    "is_stale",
    "laid_over",
    "listed",
    "price_of",
    "price_record",
    "prices_in_words",
    "quote",
    "quote_record",
    "read_custom_prices",
    "run_cost",
    "sold",
    "supply",
    "why_no_price",
]
