"""Measurements on other people's repositories, which are fetched for it and never committed."""
