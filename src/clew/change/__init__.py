"""What differs between two runs, and why; what would differ if something else were."""
