"""Where tactics come from. Every source is a `base.TacticSource`."""
