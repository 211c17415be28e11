"""Deterministic simulation of runs: real code in virtual time, with faults that a seed decides. See docs/simulation.md."""
