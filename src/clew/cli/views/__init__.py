"""What commands show: readers of plans and results that make text for people."""
