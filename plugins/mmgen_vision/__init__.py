"""Shared code of vision-and-language tasks, for our plugins and those of third parties.

Boxes, mentions, answers, published files, heads, and the networks of extractors. This package registers no parts,
imports only mmgen's public modules, and is versioned with `mmgen.API_VERSION`."""
