"""Generated questions and labels: drawn, written by the model, checked, reviewed by people."""
