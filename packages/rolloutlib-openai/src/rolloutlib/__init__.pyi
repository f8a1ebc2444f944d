# Lets type checkers find rolloutlib.openai in an editable install; not part of the wheel.
