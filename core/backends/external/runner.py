"""Runs a pipeline's own code in its own interpreter: `python runner.py FILE.py OBJECT`.

Only the standard library, as nothing else is known to be there, and Python 3.9 or newer. Requests and replies
are lines of JSON over the stdin and stdout that it was started with. The code itself gets neither: what it
prints goes to stderr, and its stdin is empty. What the object offers decides how it is asked: see `ADAPTERS`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import itertools
import json
import math
import os
import sys
import threading
import time
import traceback
from functools import partial
from graphlib import CycleError, TopologicalSorter
from types import SimpleNamespace
from typing import Any

MAX_HITS = 100_001  # hits read from a generator; the reader of replies allows far fewer and says so
DEEP = 6  # levels of metadata that are kept
MAX_TEXT_CHARS = 4_000  # characters of a text in metadata, and of an error
LOOK_S = 1.0  # between looks whether anybody is left to ask
QUERY = ("query", "question", "text", "q", "query_str", "input")
COUNT = ("k", "top_k", "n", "limit", "num_results", "n_results")
OTHERS = ("history", "filters", "trace_id")
DOCUMENT = ("doc_id", "document_id", "source", "file_path", "file_name", "filename", "url", "path")
STARTS = ("start_index", "split_idx_start")  # where splitters of LangChain and Haystack note the offset
# Where pipelines put their documents.
LISTS = ("hits", "documents", "context", "source_documents", "source_nodes", "nodes", "results")
ANSWERS = ("answer", "result", "output", "response", "replies", "answers")
COMPONENTS = {"Ranker": "rerank", "Joiner": "fuse", "Retriever": "retrieve"}  # of Haystack, by part of a name


class Wrong(Exception):
    """The code is not as it is to be; the message says how it should be."""


class ResultWithStages:
    """A result with the stages observed on the way."""

    def __init__(self, given: Any, stages: list[dict[str, Any]]) -> None:
        self.given, self.stages = given, stages


def load(path: str, name: str) -> Any:
    """Import the file and return its module and the object `name` (dots allowed)."""
    folder, file = os.path.split(os.path.abspath(path))
    sys.path[0] = folder  # as if the file was run; this runner's own folder is none of its business
    os.chdir(folder)
    module_name = os.path.splitext(file)[0]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise Wrong(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
            raise Wrong(f"{file} has no {name!r}; it has: {', '.join(own[:20]) or 'nothing to call'}")
        found = getattr(found, part)
    if inspect.isclass(found):
        raise Wrong(f"{name} is a class; name a function, or an object that was made of it")
    return module, found


def adapted(module: Any, found: Any) -> Any:
    """Return the kind of an object and the function that asks it."""
    if not inspect.isroutine(found):
        for method, kind, ask in ADAPTERS:
            if callable(getattr(found, method, None)):
                return kind, partial(ask, module, found)
    if callable(found):
        return "function", _function(found)
    raise Wrong(
        f"{type(found).__name__} is nothing to ask; expected a function (query, k), or an object with "
        ".invoke, .retrieve, .run, .search or .query"
    )


def _function(function: Any) -> Any:
    """Return a function that gives `function` as much of (query, k, history, filters, trace_id) as it
    takes.
    """
    called = getattr(function, "__name__", "the function")
    places: list[str] = []
    names: dict[str, str] = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a function in C nothing is known
        parameters, places = [], ["query", "k"]
    for place, parameter in enumerate(parameters):
        required = parameter.default is parameter.empty
        name = parameter.name
        meant = "query" if name in QUERY else "k" if name in COUNT else name if name in OTHERS else None
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            by_place = ("query", "k")[place] if place < 2 and required else None
            meant = "query" if place == 0 else meant or by_place
        if parameter.kind is parameter.VAR_KEYWORD:
            taken = {*places, *names.values()}
            names.update({one: one for one in ("k", *OTHERS) if one not in taken})
        elif meant and parameter.kind is parameter.POSITIONAL_ONLY and len(places) == place:
            places.append(meant)
        elif meant and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            names[name] = meant
        elif required and parameter.kind is not parameter.VAR_POSITIONAL:
            raise Wrong(
                f"{called} has a parameter {name!r} without a default; it may take: query, k, history, "
                "filters, trace_id"
            )
    if "query" not in {*places, *names.values()}:
        raise Wrong(f"{called} takes no query; expected (query, k)")
    return lambda asked: function(
        *(asked[meant] for meant in places), **{name: asked[meant] for name, meant in names.items()}
    )


def _langchain(_module: Any, found: Any, asked: dict[str, Any]) -> Any:
    """Call a retriever or a chain. Retrievers inside it become stages, as LangChain's callbacks report
    them.
    """
    if "langchain_core" not in sys.modules:
        return found.invoke(asked["query"])
    from langchain_core.callbacks import BaseCallbackHandler  # type: ignore[import-not-found,unused-ignore]

    began: dict[Any, Any] = {}
    stages: list[dict[str, Any]] = []

    class Watch(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
        def on_retriever_start(self, serialized: Any, _query: str, **more: Any) -> None:
            name = more.get("name") or (serialized or {}).get("name") or "retriever"
            began[more.get("run_id")] = (name, more.get("parent_run_id"), time.perf_counter())

        def on_retriever_end(self, documents: Any, **more: Any) -> None:
            name, parent, start = began.get(more.get("run_id"), ("retriever", None, 0.0))
            if parent is not None:  # else it is the whole, whose list is the reply
                took = (time.perf_counter() - start) * 1000
                stages.append({"name": name, "kind": "retrieve", "ms": took, "hits": hits_of(documents)})

    return ResultWithStages(found.invoke(asked["query"], config={"callbacks": [Watch()]}), stages)


def _haystack(_module: Any, found: Any, asked: dict[str, Any]) -> Any:
    if callable(getattr(found, "inputs", None)) and hasattr(found, "graph"):
        return _haystack_pipeline(found, asked)
    parameters = inspect.signature(found.run).parameters
    query = next((name for name in QUERY if name in parameters), None)
    if query is None:
        raise Wrong(f"its .run takes none of {', '.join(QUERY)}; it takes: {', '.join(parameters)}")
    counts = [name for name in COUNT if name in parameters][:1]
    return found.run(**{query: asked["query"]}, **dict.fromkeys(counts, asked["k"]))


def _haystack_pipeline(found: Any, asked: dict[str, Any]) -> Any:
    """Every open input called query (or text, question, prompt) gets the question, every top_k stays as it is
    set; the lists of its components are stages, wired as its graph is.
    """
    data: dict[str, dict[str, Any]] = {}
    for component, sockets in found.inputs().items():
        for socket, facts in sockets.items():
            if socket in ("query", "text", "question", "prompt"):
                data.setdefault(component, {})[socket] = asked["query"]
            elif facts.get("is_mandatory"):
                raise Wrong(
                    f"the pipeline's input {component}.{socket} is not a question; wrap it in a function"
                )
    if not data:
        raise Wrong("the pipeline has no open input called query, text, question or prompt")
    given = found.run(data, include_outputs_from=set(found.graph.nodes))
    feeding = {
        str(name): [str(edge[0]) for edge in found.graph.edges if edge[1] == name]
        for name in found.graph.nodes
    }
    try:
        order = list(TopologicalSorter(feeding).static_order())
    except CycleError:  # as they were added
        order = list(feeding)
    having = {name for name in order if isinstance(given.get(name, {}).get("documents"), list)}

    def nearest(name: str, seen: set[str]) -> set[str]:
        """Return the nearest components with lists that feed a component."""
        new = {one for one in feeding[name] if one not in seen}
        seen |= new
        return new & having | {one for other in new - having for one in nearest(other, seen)}

    stages = []
    for name in order:
        if name in having:
            component = type(found.graph.nodes[name].get("instance")).__name__
            kind = next((told for part, told in COMPONENTS.items() if part in component), "other")
            stage = {"name": name, "kind": kind, "hits": hits_of(given[name]["documents"])}
            before = sorted(nearest(name, {name}), key=order.index)
            stages.append({**stage, "from": before} if before and kind != "retrieve" else stage)
    answer = next((one for name in reversed(order) if (one := _answer(given.get(name)))), None)
    reply = {"hits": stages[-1]["hits"] if stages else [], "answer": answer}
    return ResultWithStages(reply if answer else {"hits": reply["hits"]}, stages)


def _beir(module: Any, found: Any, asked: dict[str, Any]) -> Any:
    """`search(corpus, queries, top_k)` gives {question: {document: score}}; the corpus has the texts."""
    parameters = inspect.signature(found.search).parameters
    if "corpus" not in parameters:
        return _function(found.search)(asked)
    corpus = getattr(found, "corpus", None)
    corpus = getattr(module, "corpus", None) if corpus is None else corpus
    if not isinstance(corpus, dict):
        raise Wrong("set `corpus`, a dict of {document id: {title, text}}, in the file or on the object")
    more = {"score_function": "cos_sim"} if "score_function" in parameters else {}
    ranked = found.search(corpus=corpus, queries={"q": asked["query"]}, top_k=asked["k"], **more)["q"]
    best = sorted(ranked.items(), key=lambda item: -float(item[1]))[: asked["k"]]
    entries = {id: one if isinstance(one := corpus.get(id), dict) else {"text": one} for id, _ in best}
    return [
        {"doc_id": id, "score": score}
        | {name: str(entries[id].get(name) or "") for name in ("text", "title")}
        for id, score in best
    ]


# (method, how the kind is shown, function of the file's module, the object and the request)
ADAPTERS: Any = (
    ("invoke", "LangChain .invoke", _langchain),
    ("retrieve", "LlamaIndex .retrieve", lambda _, found, asked: found.retrieve(asked["query"])),
    ("run", "Haystack .run", _haystack),
    ("search", "BEIR .search", _beir),
    ("query", "LlamaIndex .query", lambda _, found, asked: found.query(asked["query"])),
)


def reply_of(given: Any) -> Any:
    """Whatever a pipeline gave as a reply of plain JSON values."""
    if isinstance(given, ResultWithStages):
        reply = reply_of(given.given)
        if not given.stages:
            return reply
        return {**(reply if isinstance(reply, dict) else {"hits": reply}), "stages": given.stages}
    if isinstance(given, dict):
        return _object(given)
    nodes = getattr(given, "source_nodes", None)
    if nodes is not None:  # LlamaIndex' response
        return {"hits": hits_of(nodes), "answer": str(given)}
    if isinstance(given, str):
        return given  # the reader of replies says what it should be
    return hits_of(given)


def _object(given: dict[Any, Any]) -> dict[str, Any]:
    name = next((one for one in LISTS if isinstance(given.get(one), (list, tuple))), None)
    if name is None:
        return {str(key): plain(value) for key, value in given.items()}
    reply: dict[str, Any] = {"hits": hits_of(given[name])}
    if name != "hits":
        answer = _answer(given)
        return {**reply, "answer": answer} if answer is not None else reply
    for key, value in given.items():
        if key == "stages" and isinstance(value, (list, tuple)):
            reply["stages"] = [_stage(one) if isinstance(one, dict) else plain(one) for one in value]
        elif key != "hits":
            reply[str(key)] = plain(value)
    return reply


def _stage(given: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(key): hits_of(value) if key == "hits" and value else plain(value) for key, value in given.items()
    }


def _answer(given: Any) -> Any:
    for name in ANSWERS if isinstance(given, dict) else ():
        value = given.get(name)
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
        for text in (value, getattr(value, "content", None), getattr(value, "data", None)):
            if isinstance(text, str):
                return text
    return None


def hits_of(given: Any) -> Any:
    """Convert a result to a list of hits; a value that is not iterable is returned unchanged, for the reader
    of replies to reject.
    """
    if given is None:
        return []
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        return plain(given)
    return [hit_of(one) for one in itertools.islice(given, MAX_HITS)]


def hit_of(one: Any) -> Any:
    """Convert a framework's document to a hit: a dict, LangChain's, LlamaIndex', Haystack's, or a pair of one
    of these and its score.
    """
    if isinstance(one, (tuple, list)) and len(one) == 2:
        first, score = one
        if isinstance(first, (int, float)) and not isinstance(score, (int, float)):
            first, score = score, first
        found = {"doc_id": first} if isinstance(first, (str, int)) else hit_of(first)
        return {**found, "score": number(score)} if isinstance(found, dict) else plain(one)
    if isinstance(one, dict):
        if "doc_id" in one or not ("page_content" in one or "content" in one):
            return {str(key): number(value) if key == "score" else plain(value) for key, value in one.items()}
        one = SimpleNamespace(**{str(key): value for key, value in one.items()})  # Document.to_dict()
    node = getattr(one, "node", one)  # LlamaIndex: NodeWithScore
    method = getattr(node, "get_content", None)
    text = method() if callable(method) else _attribute(one, "page_content", "content", "text")
    if text is None and not hasattr(one, "id"):
        return plain(one)
    text = text or ""
    metadata = _attribute(node, "metadata", "meta")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    id = _attribute(node, "node_id", "id_", "id")
    start, end = _attribute(node, "start_char_idx"), _attribute(node, "end_char_idx")
    begins = next((metadata[name] for name in STARTS if isinstance(metadata.get(name), int)), None)
    if start is None and begins is not None:
        start, end = begins, begins + len(text)
    whole = start is not None and end is not None
    title = metadata.get("title")
    hit = {
        "doc_id": _document(metadata, _attribute(node, "ref_doc_id") or id, text),
        "text": text,
        "id": id,
        "start": start if whole else None,
        "end": end if whole else None,
        "score": number(_attribute(one, "score")),
        "title": title if isinstance(title, str) else None,
        "metadata": plain(metadata),
    }
    return {key: value for key, value in hit.items() if value is not None}


def _document(metadata: dict[Any, Any], id: Any, text: Any) -> Any:
    """Return the name of a passage's document from its metadata, else from the passage."""
    for name in DOCUMENT:
        value = metadata.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return value
    return str(id) if id else (str(text)[:60] or "unnamed")


def _attribute(one: Any, *names: str) -> Any:
    for name in names:
        value = getattr(one, name, None)
        if value is not None and not callable(value):
            return value
    return None


def number(value: Any) -> Any:
    """Convert a number, also of numpy or torch, to JSON; other values stay unchanged."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return plain(value)


def plain(value: Any, deep: int = 0, above: tuple[int, ...] = ()) -> Any:
    """`value` as JSON values; what is in a circle or too deep is a mark, what is no value a short text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if deep < 1 or math.isfinite(value) else None
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        if id(value) in above:
            raise Wrong("the reply contains itself: it goes in a circle")
        if deep > DEEP:
            return "..."
        inside = (*above, id(value))
        if isinstance(value, dict):
            return {str(key): plain(item, deep + 1, inside) for key, item in value.items()}
        return [plain(item, deep + 1, inside) for item in itertools.islice(value, MAX_HITS)]
    if type(value).__module__ in ("numpy", "torch"):
        try:
            return plain(value.tolist(), deep, above)
        except (AttributeError, TypeError, ValueError):
            pass
    return str(value)[:MAX_TEXT_CHARS]


def answer(ask: Any, asked: dict[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """Return the reply to a request with the duration of the pipeline's own code, or the error it raised.

    What an async function returns is awaited in one `loop` for all calls, as clients of libraries belong to
    theirs.
    """
    began = time.perf_counter()
    try:
        given = ask(asked)
        if inspect.isawaitable(given):
            given = loop.run_until_complete(asyncio.wait_for(given, None))
        if inspect.isgenerator(given):
            given = list(itertools.islice(given, MAX_HITS))
        took = (time.perf_counter() - began) * 1000
        return {"ms": took, "reply": reply_of(given)}
    except Exception as error:  # noqa: BLE001 - their code may raise anything; it is told
        return _failed(error)


def _failed(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Wrong):
        return {"error": str(error)[:MAX_TEXT_CHARS]}
    traceback.print_exception(type(error), error, error.__traceback__)
    return {"error": f"{type(error).__name__}: {error}"[:MAX_TEXT_CHARS]}


def _end_alone(parent: int) -> None:
    """End when nobody is left to ask, wherever the code is."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


def main() -> int:
    """Answer until nobody asks any more."""
    asking = os.fdopen(os.dup(0), "rb")
    telling = os.fdopen(os.dup(1), "wb")
    if hasattr(os, "register_at_fork"):  # replies are this process's alone; what it executes inherits no pipe
        os.register_at_fork(after_in_child=lambda: os.dup2(2, telling.fileno(), inheritable=False))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)  # whatever is printed, by C code too
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    threading.Thread(target=_end_alone, args=(os.getppid(),), daemon=True).start()

    def tell(what: dict[str, Any]) -> None:
        try:
            line = json.dumps(what)
        except (TypeError, ValueError, RecursionError) as error:
            line = json.dumps({"id": what.get("id"), "error": f"its reply is not JSON: {error}"})
        telling.write(line.encode("utf-8", "replace") + b"\n")
        telling.flush()

    try:
        kind, ask = adapted(*load(sys.argv[1], sys.argv[2]))
    except BaseException as error:  # noqa: BLE001 - importing it may even exit
        tell(_failed(error))
        return 1
    tell({"ready": kind, "python": ".".join(map(str, sys.version_info[:3]))})
    loop = asyncio.new_event_loop()
    for line in asking:
        asked = json.loads(line)
        tell({"id": asked["id"], **answer(ask, asked["ask"], loop)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
