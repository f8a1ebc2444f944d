"""Graders that compare the answer in a text with references."""
