"""How many rows of a table are held at a time; a module that loads nothing, for the commands."""

#: Rows that are in memory at a time.
BATCH_ROWS = 50_000
#: Rows that the commands compute with, unless told otherwise.
MAX_ROWS = 50_000
