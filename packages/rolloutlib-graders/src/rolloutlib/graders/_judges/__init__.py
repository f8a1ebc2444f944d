"""Language models as judges."""
