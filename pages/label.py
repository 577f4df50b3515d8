"""Label: relevance judgements by people."""

from __future__ import annotations

from ui import labelling

labelling.draw()
