# Lets type checkers find rolloutlib.tinker in an editable install; not part of the wheel.
