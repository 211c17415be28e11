"""Runs in a simulated computer: real code in virtual time, with faults that a seed decides. See docs/simulation.md."""
