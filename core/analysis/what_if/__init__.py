"""A stored run replayed with other parameters, from its spans alone: no model is called."""
