"""Where managed things lie, and how they are written, listed and removed.

`root` says what Clew needs of a storage root and `local` does it with folders; `layout` knows all names below a root;
`parts` and `committed` are the descriptions of rows, `plans` the plans of runs, `inventory` the lists that lineage and
garbage collection read. Other packages hold keys, and never put paths together themselves.
"""
