"""What lies in the files of a quarantine part: rows that were not loaded, with what is wrong with them.

Columns of the dataset hold the values that could be read, and NULL for the others. Beside them stand the place of the
row, the texts of all columns as they were in the file, and the problems.
"""

PROBLEMS = "__problems"
"""A list of column, value and reason; no column where the row as a whole cannot be read."""
TEXTS = "__texts"
"""The texts of the dataset's columns, in their order."""
RECORD = "__record"
"""The row as it is in the file, where it could not be taken apart."""
CORRECTION = "__correction"
"""The place of the corrected row that was loaded instead, in words."""

FOUND = "found"
"""The detail of a quarantine part with how many rows the check of the load refused."""
CORRECTED = "corrected"
"""The detail with how many of them were loaded in their corrected form."""
EMPTIED = "values_emptied"
"""The detail of an input with how many values did not fit and became NULL."""
EMPTIED_COLUMNS = "emptied_columns"
"""The detail with the columns that they were in."""

SOURCE_FILE_COLUMN = "_source_file"
SOURCE_LINE_COLUMN = "_source_line"
PROBLEM_COLUMN = "_problem"
"""The columns that an export has beside those of the dataset. The first two tie a corrected row to the original."""
