"""Lake projects: what their modules are, and their compiled form in the user's cache."""
