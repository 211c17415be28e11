"""Where managed things lie: parts of runs, plans, and the files that hold them."""
