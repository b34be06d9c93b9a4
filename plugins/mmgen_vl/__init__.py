"""The open kit of vision and language: what tasks about pictures share, for our own plugins and for those of others.

Boxes, mentions, answers, files as they are published, and heads over states. It registers no parts. It imports only
what plugins may import, and its contract is versioned with `mmgen.API_VERSION`."""
