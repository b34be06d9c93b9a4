"""Published files: what there is to fetch, and fetching it: what arrives is complete, or one line says why not."""
