"""Talking to Lean: sessions, pools, goal extraction and the replay check."""
