"""Goals: where they come from, how they are written, which are the same, how hard they look."""
