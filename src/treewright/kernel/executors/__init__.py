"""Where requests run. One protocol (`base`), chosen by name (`registry`)."""
