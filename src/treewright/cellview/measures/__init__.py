"""What damage does to a search, in numbers: across trials of an experiment. Pure, seeded."""
