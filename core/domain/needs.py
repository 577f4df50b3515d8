"""The requirements of routes, and the families of routes."""

from __future__ import annotations

from enum import Enum
from typing import Literal

Family = Literal[
    "baseline",
    "hybrid",
    "query",
    "index",
    "scoring",
    "corrective",
    "agentic",
    "structured",
    "memory",
    "your pipeline",
]


class Need(Enum):
    """A requirement for running a route."""

    LLM = "a language model"
    WEB = "a web search"
    CROSS_ENCODER = "a cross-encoder"
    SELF_RAG = "a reflection-token model (Self-RAG)"
    HEADINGS = "headings and neighbours of the corpus' passages"
    CHILDREN = "small pieces of the corpus' passages"
    SENTENCES = "sentences of the corpus' passages"
    CONTEXTS = "contexts written for the corpus' passages"
    QUESTIONS = "questions written for the corpus' passages"
    EXPANDED = "passages of the corpus with the questions written for them"
    SUMMARIES = "summaries written for groups of the corpus' passages"
    EXTRACTS = "summaries extracted for groups of the corpus' passages"
    TOKENS = "token vectors of the corpus' passages"
    LATE = "vectors of the corpus' passages within their documents"
    LEARNED_SPARSE = "learned term weights of the corpus' passages"
    GRAPH = "a graph of the corpus' entities"
    GRAPH_TRIPLES = "a graph of triples written for the corpus' passages"
    FITS = "a corpus that fits the model's context"
    FID = "a Fusion-in-Decoder model"
    TABLES = "tables of the corpus"
    CSV = "CSV files of the corpus"
    WEIGHTS = "weights fitted on labels of the corpus"
    FULL_TEXT = "full-text search of a corpus in PostgreSQL"
    BM25 = "BM25 search of the corpus"
    VECTORS = "vectors of the corpus by the embedder of the settings"

    @property
    def enrichment(self) -> str | None:
        """The enrichment that meets this need, made once for each corpus; None for other needs."""
        others = ("LLM", "WEB", "CROSS_ENCODER", "SELF_RAG", "FITS", "FID", "TABLES", "CSV", "WEIGHTS")
        return None if self.name in (*others, "FULL_TEXT", "BM25", "VECTORS") else self.name.lower()
