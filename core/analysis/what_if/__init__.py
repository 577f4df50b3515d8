"""What a stored run would have been with other parameters, from its spans alone: no model is called."""
