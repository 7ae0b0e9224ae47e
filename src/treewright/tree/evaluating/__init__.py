"""One candidate from idea to score: here, on another machine, or pretended."""
