"""The user's own toolchain, through the maintained library `lean-interact`."""
