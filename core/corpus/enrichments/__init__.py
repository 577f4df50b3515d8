"""What is made once for a corpus so that some routes can search it in another way."""
