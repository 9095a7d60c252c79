"""What a run costs: chip-hours times a named, dated price."""

from chipwise.cost.money import STALE_DAYS, Price, Quote, chip_hours, is_stale, price_of, quote, run_cost

__all__ = ["STALE_DAYS", "Price", "Quote", "chip_hours", "is_stale", "price_of", "quote", "run_cost"]
