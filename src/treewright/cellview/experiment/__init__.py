"""Many proof runs by one plan: modes × agents × interventions × seeds × goals."""
