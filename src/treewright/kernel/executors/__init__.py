"""Where evaluations run. One protocol, chosen by name; see `base`."""
