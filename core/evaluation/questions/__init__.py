"""Questions and labels where there are none: drawn, written by the model, checked, reviewed by people."""
