"""One operator graph, one operator vocabulary, and the way from what was seen to the user's lines."""
