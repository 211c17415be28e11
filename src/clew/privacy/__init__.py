"""Between rows and people: what a role may see of the values of columns, and may ask by them."""
