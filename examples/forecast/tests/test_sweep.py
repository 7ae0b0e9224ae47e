"""The yardstick itself: the grid, and the errors it reports."""

# ruff: noqa: PT009  (plain unittest: nothing to install)
import unittest

import sweep


class Grid(unittest.TestCase):
    def test_ids_count_from_zero(self):
        self.assertEqual([config.config_id for config in sweep.grid()], list(range(24)))

    def test_no_two_rows_are_alike(self):
        self.assertEqual(len({config[1:] for config in sweep.grid()}), 24)

    def test_rows_beyond_the_default_are_another_half_year(self):
        rows = sweep.grid()
        last_day = max(c.cuts[-1] + c.horizon for c in rows[: sweep.DEFAULT_LIMIT])
        self.assertLessEqual(last_day, min(c.cuts[0] for c in rows[sweep.DEFAULT_LIMIT :]))


class Measure(unittest.TestCase):
    def test_a_perfect_forecast_has_no_error(self):
        config = sweep.grid()[0]
        series = sweep.read_data(sweep.HERE / "data" / "demand.csv")[config.shop]
        perfect = [series.units[cut : cut + config.horizon] for cut in config.cuts]
        self.assertEqual(set(sweep.measure(config, series, perfect).values()), {0.0})


if __name__ == "__main__":
    unittest.main()
