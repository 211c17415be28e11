"""Evidence packs: what a run did and why values are what they are, signed, to be verified without Clew."""
