"""What users write in a workspace, as frozen values that know their place in the file."""
