"""A release: what builds it and checks it (`make release`), and the recipes of other packagers."""
