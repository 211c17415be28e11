"""What commands print: plans and results as text for people."""
