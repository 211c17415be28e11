"""From a project to a plan: selectors, fragments, breakpoints, schemas, column lineage, digest."""
