"""Two evaluations question by question: what broke, what was fixed, and the step that lost each passage."""
