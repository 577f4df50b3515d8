"""What a stored run would have been with other knobs, from its spans alone: no model is asked."""
