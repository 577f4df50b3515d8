"""How to add a pipeline, as text to read and copy: what this page shows is never run by it."""

from __future__ import annotations

from core.domain.program import COMMAND

FUNCTION = """# my_rag.py
def search(query, k):
    return [{"doc_id": "faq.md", "text": "Returns take 30 days.", "score": 0.8}]
"""
STAGES = """# the same with its stages, so that Why can follow a passage through them
def search(query, k):
    found = keyword_search(query, 100)
    best = judge(query, found)[:k]
    return {
        "hits": best,
        "stages": [
            {"name": "keyword search", "kind": "retrieve", "ms": 4.1, "hits": found},
            {"name": "judge", "kind": "reranker", "ms": 80.0, "hits": best},
        ],
    }
"""
TABLES = """# routescope.toml
[external.my_rag]
function = "/path/to/my_rag.py:search"      # a function, or a LangChain, LlamaIndex, Haystack or BEIR object
python = "/path/to/its/.venv"               # the interpreter that has its libraries

[external.my_service]
url = "http://127.0.0.1:8000/search"        # POST {query, history, k, filters, trace_id}
headers = { Authorization = "Bearer ${MY_TOKEN}" }   # ${NAME}: a variable of the environment
"""
COMMANDS = f"""{COMMAND} ask "How do I start a return?" --corpus support \\
    --route my_rag=my_rag.py:search --python .venv
{COMMAND} eval support --route my_service=http://127.0.0.1:8000/search
"""
