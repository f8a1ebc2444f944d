# Lets type checkers find rolloutlib.evals in an editable install; not part of the wheel.
