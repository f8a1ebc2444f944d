# Lets type checkers find rolloutlib.graders in an editable install; not part of the wheel.
