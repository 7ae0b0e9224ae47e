"""Where ideas come from. Sources share one small interface; see `base`."""
