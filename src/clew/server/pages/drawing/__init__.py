"""Pictures as SVG. The layout is done here, so they need no script."""
