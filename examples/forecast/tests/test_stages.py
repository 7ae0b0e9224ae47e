"""What every stage of the model promises, whatever its method."""

# ruff: noqa: PT009, PT027  (plain unittest: nothing to install)
import unittest

from demand import CannotForecast, Day, clean, forecast, level, promo, trend, week

WEEK = (0.8, 0.9, 1.0, 1.0, 1.1, 1.4, 0.8)


def shop(days: int, size: float = 100.0, uplift: float = 1.5) -> list[Day]:
    """A history without noise: the same week again and again, a promotion every fourth week."""
    history = []
    for day in range(days):
        promoted = day // 7 % 4 == 3
        units = size * WEEK[day % 7] * (uplift if promoted else 1.0)
        history.append(Day(day % 7, promoted, units))
    return history


class Clean(unittest.TestCase):
    def test_keeps_the_number_of_days(self):
        self.assertEqual(len(clean.repair(shop(100))), 100)

    def test_a_return_is_no_sale(self):
        history = [*shop(56), Day(0, False, -3.0)]
        self.assertGreaterEqual(min(clean.repair(history)), 0.0)

    def test_leaves_ordinary_days_alone(self):
        history = shop(56)
        self.assertEqual(clean.repair(history), [day.units for day in history])


class Promo(unittest.TestCase):
    def test_a_promotion_sells_more(self):
        history = shop(84)
        self.assertGreater(promo.uplift(history, [day.units for day in history]), 1.0)

    def test_needs_no_promotion_in_the_history(self):
        history = shop(21)
        self.assertGreater(promo.uplift(history, [day.units for day in history]), 0.0)


class Week(unittest.TestCase):
    def test_averages_to_one(self):
        history = shop(21)
        factors = week.profile(history, [day.units for day in history])
        self.assertAlmostEqual(sum(factors) / 7, 1.0)

    def test_knows_saturday(self):
        history = shop(21)
        factors = week.profile(history, [day.units for day in history])
        self.assertEqual(max(range(7), key=factors.__getitem__), 5)

    def test_survives_a_closed_fortnight(self):
        history = [Day(day % 7, False, 0.0) for day in range(28)]
        self.assertTrue(all(factor > 0.0 for factor in week.profile(history, [0.0] * 28)))


class Level(unittest.TestCase):
    def test_of_a_constant_is_that_constant(self):
        self.assertAlmostEqual(level.smooth([7.0] * 60), 7.0)

    def test_follows_a_step(self):
        self.assertAlmostEqual(level.smooth([5.0] * 60 + [9.0] * 90), 9.0, places=3)


class Trend(unittest.TestCase):
    def test_of_a_constant_is_none(self):
        self.assertAlmostEqual(trend.slope([3.0] * 100), 0.0)

    def test_sees_the_direction(self):
        self.assertGreater(trend.slope([float(day) for day in range(100)]), 0.0)
        self.assertLess(trend.slope([-float(day) for day in range(100)]), 0.0)

    def test_path_has_a_step_for_each_day(self):
        self.assertEqual(len(trend.path(0.5, 28)), 28)
        self.assertEqual(trend.path(0.0, 3), [0.0, 0.0, 0.0])


class Forecast(unittest.TestCase):
    def test_repeats_a_week_that_repeats(self):
        known = shop(63, uplift=1.2)
        expected = forecast(known[:56], [Day(day.weekday, day.promo) for day in known[56:]])
        for day, units in zip(known[56:], expected, strict=True):
            self.assertAlmostEqual(units, day.units, delta=0.25 * day.units)

    def test_is_never_negative(self):
        falling = [Day(day % 7, False, max(400.0 - 7.0 * day, 0.0)) for day in range(60)]
        expected = forecast(falling, [Day(day % 7, False) for day in range(60, 88)])
        self.assertGreaterEqual(min(expected), 0.0)

    def test_declines_a_short_history(self):
        with self.assertRaises(CannotForecast):
            forecast(shop(27), [Day(0, False)])


if __name__ == "__main__":
    unittest.main()
