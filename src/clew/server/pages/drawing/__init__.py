"""Pictures as SVG, laid out here: no script is needed to see them."""
