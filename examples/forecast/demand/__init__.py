"""Daily demand of a shop, some weeks ahead."""

from demand.days import CannotForecast, Day
from demand.pipeline import forecast

__all__ = ["CannotForecast", "Day", "forecast"]
