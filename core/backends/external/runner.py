"""Runs a pipeline's own code in its own interpreter: `python runner.py FILE.py OBJECT`.

Only the standard library, as nothing else is known to be there, and Python 3.9 or newer. Requests and replies
are lines of JSON over the stdin and stdout that it was started with. The code itself gets neither: what it
prints goes to stderr, and its stdin is empty. What the object offers decides how it is asked.
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
from typing import Any

MAX_HITS = 100_001  # hits read from a generator; the reader of replies allows far fewer and says so
DEEP = 6  # levels of metadata that are kept
MAX_TEXT_CHARS = 4_000  # characters of a text in metadata, and of an error
LOOK_S = 1.0  # between looks whether anybody is left to ask
QUERY = ("query", "question", "text", "q", "query_str", "input")
COUNT = ("k", "top_k", "n", "limit", "num_results", "n_results")
DOCUMENT = ("doc_id", "document_id", "source", "file_path", "file_name", "filename", "url", "path")
STARTS = ("start_index", "split_idx_start")  # where splitters of LangChain and Haystack note the offset
# Where pipelines put their documents.
LISTS = ("hits", "documents", "context", "source_documents", "source_nodes", "nodes", "results")
ANSWERS = ("answer", "result", "output", "response", "replies", "answers")


class Wrong(Exception):
    """The code is not as it is to be; the message says how it should be."""


def load(path: str, name: str) -> Any:
    """Import the file and return the object `name` (dots allowed)."""
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
    return found


class LoadedPipeline:
    """One object, and how it is asked."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.kind, self.ask = self._adapter()

    def _adapter(self) -> Any:
        found = self.found
        if inspect.isroutine(found):
            return "function", _Function(found)
        for method, kind, adapter in (
            ("invoke", "LangChain .invoke", self._langchain),
            ("retrieve", "LlamaIndex .retrieve", self._llamaindex),
            ("run", "Haystack .run", self._haystack),
            ("search", "BEIR .search", self._beir),
            ("query", "LlamaIndex .query", self._query_engine),
        ):
            if callable(getattr(found, method, None)):
                return kind, adapter
        if callable(found):
            return "function", _Function(found)
        raise Wrong(
            f"{type(found).__name__} is nothing to ask; expected a function (query, k), or an object with "
            ".invoke, .retrieve, .run, .search or .query"
        )

    def _langchain(self, asked: dict[str, Any]) -> Any:
        """Call a retriever or a chain. Retrievers inside it become stages, as LangChain's callbacks report
        them.
        """
        watch = _langchain_watch()
        config = {"callbacks": [watch]} if watch is not None else None
        given = self.found.invoke(asked["query"], **({"config": config} if config else {}))
        return ResultWithStages(given, watch.stages()) if watch is not None else given

    def _llamaindex(self, asked: dict[str, Any]) -> Any:
        return self.found.retrieve(asked["query"])

    def _query_engine(self, asked: dict[str, Any]) -> Any:
        return self.found.query(asked["query"])

    def _haystack(self, asked: dict[str, Any]) -> Any:
        found = self.found
        if callable(getattr(found, "inputs", None)) and hasattr(found, "graph"):
            return _haystack_pipeline(found, asked)
        parameters = inspect.signature(found.run).parameters
        names = [name for name in COUNT if name in parameters]
        return found.run(
            **{_first(parameters, QUERY): asked["query"]}, **dict.fromkeys(names[:1], asked["k"])
        )

    def _beir(self, asked: dict[str, Any]) -> Any:
        """`search(corpus, queries, top_k)` gives {question: {document: score}}; the corpus has the texts."""
        found = self.found
        parameters = list(inspect.signature(found.search).parameters)
        if "corpus" not in parameters:
            return _Function(found.search)(asked)
        corpus = getattr(found, "corpus", None)
        if corpus is None:
            module = sys.modules.get(getattr(found, "__module__", ""))
            main = next((m for m in list(sys.modules.values()) if found in _values(m)), module)
            corpus = getattr(main, "corpus", None)
        if not isinstance(corpus, dict):
            raise Wrong(
                "a BEIR retriever searches a corpus that is given to it: set `corpus`, a dict of "
                "{document id: {title, text}}, in the file or on the object"
            )
        more = {"score_function": "cos_sim"} if "score_function" in parameters else {}
        ranked = found.search(corpus=corpus, queries={"q": asked["query"]}, top_k=asked["k"], **more)["q"]
        best = sorted(ranked.items(), key=lambda item: -float(item[1]))[: asked["k"]]
        return [
            {
                "doc_id": id,
                "score": score,
                "text": _text_of(corpus.get(id)),
                "title": _title_of(corpus.get(id)),
            }
            for id, score in best
        ]


class _Function:
    """A plain function; it is given as much of (query, k, history, filters, trace_id) as it takes."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.places: list[str] = []
        self.names: dict[str, str] = {}
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # of a function in C nothing is known
            parameters = []
            self.places = ["query", "k"]
        for parameter in parameters:
            required = parameter.default is parameter.empty
            meant = _meant(parameter.name)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                place = len(self.places)
                by_place = ("query", "k")[place] if place < 2 and required else None
                meant = "query" if place == 0 else meant or by_place
                if meant and not self.names:
                    self.places.append(meant)
                elif meant:
                    self.names[parameter.name] = meant
                elif required:
                    raise _unknown(function, parameter.name)
                else:
                    self.names.setdefault("", "")  # the others are given by name
            elif parameter.kind is parameter.KEYWORD_ONLY and meant:
                self.names[parameter.name] = meant
            elif parameter.kind is parameter.KEYWORD_ONLY and required:
                raise _unknown(function, parameter.name)
            elif parameter.kind is parameter.VAR_KEYWORD:
                taken = {*self.places, *self.names.values()}
                self.names.update({n: n for n in ("k", "history", "filters", "trace_id") if n not in taken})
        self.names.pop("", None)
        if not self.places and "query" not in self.names.values():
            raise Wrong(
                f"{getattr(function, '__name__', 'the function')} takes no query; expected (query, k)"
            )

    def __call__(self, asked: dict[str, Any]) -> Any:
        named = {name: asked[meant] for name, meant in self.names.items()}
        return self.function(*(asked[meant] for meant in self.places), **named)


def _meant(name: str) -> Any:
    if name in QUERY:
        return "query"
    if name in COUNT:
        return "k"
    return name if name in ("history", "filters", "trace_id") else None


def _unknown(function: Any, name: str) -> Wrong:
    called = getattr(function, "__name__", "the function")
    return Wrong(
        f"{called} has a parameter {name!r} without a default; it may take: query, k, history, "
        "filters, trace_id"
    )


def _first(parameters: Any, names: Any) -> str:
    for name in names:
        if name in parameters:
            return str(name)
    raise Wrong(f"its .run takes none of {', '.join(names)}; it takes: {', '.join(parameters)}")


def _values(module: Any) -> list[Any]:
    return [value for value in vars(module).values() if not isinstance(value, (int, str))] if module else []


class ResultWithStages:
    """A result with the stages observed on the way."""

    def __init__(self, given: Any, stages: list[dict[str, Any]]) -> None:
        self.given, self.stages = given, stages


def _langchain_watch() -> Any:
    """Return a callback handler that records each retriever that ran inside another; None without
    LangChain.
    """
    if "langchain_core" not in sys.modules:
        return None
    from langchain_core.callbacks import BaseCallbackHandler  # type: ignore[import-not-found,unused-ignore]

    class Watch(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            self.began: dict[Any, Any] = {}
            self.ended: list[dict[str, Any]] = []

        def on_retriever_start(self, serialized: Any, _query: str, **more: Any) -> None:
            name = more.get("name") or (serialized or {}).get("name") or "retriever"
            self.began[more.get("run_id")] = (name, more.get("parent_run_id"), time.perf_counter())

        def on_retriever_end(self, documents: Any, **more: Any) -> None:
            name, parent, began = self.began.get(more.get("run_id"), ("retriever", None, None))
            if parent is None or began is None:
                return  # the whole of it, whose list is the reply
            took = (time.perf_counter() - began) * 1000
            self.ended.append({"name": name, "kind": "retrieve", "ms": took, "hits": hits_of(documents)})

        def stages(self) -> list[dict[str, Any]]:
            return self.ended

    return Watch()


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
    every = set(found.graph.nodes)
    given = found.run(data, include_outputs_from=every)
    edges = [(str(a), str(b)) for a, b in {(a, b) for a, b, *_ in found.graph.edges}]
    order = _in_order(list(found.graph.nodes), edges)
    having = {name for name in order if isinstance(given.get(name, {}).get("documents"), list)}
    stages = []
    for name in order:
        if name in having:
            kind = _haystack_kind(type(found.graph.nodes[name].get("instance")).__name__)
            before = sorted(_behind(name, edges, having), key=order.index)
            stage = {"name": name, "kind": kind, "hits": hits_of(given[name]["documents"])}
            if before and kind != "retrieve":
                stage["from"] = before
            stages.append(stage)
    answer = next((one for name in reversed(order) if (one := _answer(given.get(name)))), None)
    final = given[stages[-1]["name"]]["documents"] if stages else []
    return ResultWithStages({"hits": hits_of(final), **({"answer": answer} if answer else {})}, stages)


def _in_order(nodes: list[Any], edges: list[tuple[str, str]]) -> list[str]:
    """Components after those that feed them; in a loop, as they were added."""
    left, order = [str(node) for node in nodes], []
    while left:
        free = [n for n in left if not any(b == n and a in left and a != n for a, b in edges)] or left[:1]
        order += free
        left = [n for n in left if n not in free]
    return order


def _behind(name: str, edges: list[tuple[str, str]], having: set[str]) -> set[str]:
    """Return the nearest components with lists that feed a component."""
    found: set[str] = set()
    todo, seen = [name], {name}
    while todo:
        at = todo.pop()
        for a, b in edges:
            if b == at and a not in seen:
                seen.add(a)
                if a in having:
                    found.add(a)
                else:
                    todo.append(a)
    return found


def _haystack_kind(name: str) -> str:
    for part, kind in (("Ranker", "rerank"), ("Joiner", "fuse"), ("Retriever", "retrieve")):
        if part in name:
            return kind
    return "other"


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
    if name == "hits":
        for key, value in given.items():
            if key == "stages" and isinstance(value, (list, tuple)):
                reply["stages"] = [_stage(one) for one in value]
            elif key != "hits":
                reply[str(key)] = plain(value)
    elif (answer := _answer(given)) is not None:
        reply["answer"] = answer
    return reply


def _stage(given: Any) -> Any:
    if not isinstance(given, dict):
        return plain(given)
    return {
        str(key): hits_of(value) if key == "hits" and value is not None else plain(value)
        for key, value in given.items()
    }


def _answer(given: Any) -> Any:
    if not isinstance(given, dict):
        return None
    for name in ANSWERS:
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
        return _own_hit(one)
    node = getattr(one, "node", one)  # LlamaIndex: NodeWithScore
    text = _called(node, "get_content") or _attribute(one, "page_content", "content", "text")
    if text is None and not hasattr(one, "id"):
        return plain(one)
    metadata = _attribute(node, "metadata", "meta")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    id = _attribute(node, "node_id", "id_", "id")
    reference = _attribute(node, "ref_doc_id")
    hit = {
        "doc_id": _document(metadata, reference or id, text),
        "text": text or "",
        "id": id,
        "start": _attribute(node, "start_char_idx"),
        "end": _attribute(node, "end_char_idx"),
        "score": number(_attribute(one, "score")),
        "title": metadata.get("title"),
        "metadata": plain(metadata),
    }
    begins = next((metadata[name] for name in STARTS if isinstance(metadata.get(name), int)), None)
    if hit["start"] is None and begins is not None:
        hit["start"], hit["end"] = begins, begins + len(text or "")
    if hit["start"] is None or hit["end"] is None:
        hit["start"] = hit["end"] = None
    if not isinstance(hit["title"], str):
        hit["title"] = None
    return {key: value for key, value in hit.items() if value is not None}


def _own_hit(one: dict[Any, Any]) -> dict[str, Any]:
    """Convert a dict to a hit: its author's fields with numpy numbers converted; Document.to_dict() is read,
    too.
    """
    if "doc_id" not in one and ("page_content" in one or "content" in one):
        metadata = one.get("metadata") or one.get("meta") or {}
        text = one.get("page_content") or one.get("content")
        hit = {
            "doc_id": _document(metadata, one.get("id"), text),
            "text": text,
            "id": one.get("id"),
            "score": number(one.get("score")),
            "metadata": plain(metadata),
        }
        return {key: value for key, value in hit.items() if value is not None}
    return {str(key): number(value) if key == "score" else plain(value) for key, value in one.items()}


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


def _called(one: Any, name: str) -> Any:
    method = getattr(one, name, None)
    return method() if callable(method) else None


def _text_of(entry: Any) -> str:
    return str(entry.get("text") or "") if isinstance(entry, dict) else str(entry or "")


def _title_of(entry: Any) -> str:
    return str(entry.get("title") or "") if isinstance(entry, dict) else ""


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


def _awaited(given: Any) -> Any:
    """Await an async function's result in a persistent event loop, as library clients belong to their
    loop.
    """
    global _loop
    if not inspect.isawaitable(given):
        return given
    if _loop is None:
        _loop = asyncio.new_event_loop()

    async def wait() -> Any:
        return await given

    return _loop.run_until_complete(wait())


_loop: Any = None


def answer(pipeline: LoadedPipeline, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request with the duration of the pipeline's own code, or the error it raised."""
    began = time.perf_counter()
    try:
        given = _awaited(pipeline.ask(asked))
        if inspect.isgenerator(given):
            given = list(itertools.islice(given, MAX_HITS))
        took = (time.perf_counter() - began) * 1000
        return {"ms": took, "reply": reply_of(given)}
    except Wrong as error:
        return {"error": str(error)[:MAX_TEXT_CHARS]}
    except Exception as error:  # noqa: BLE001 - their code may raise anything; it is told
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:MAX_TEXT_CHARS]}


def _alone(parent: int) -> None:
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
    threading.Thread(target=_alone, args=(os.getppid(),), daemon=True).start()

    def tell(what: dict[str, Any]) -> None:
        try:
            line = json.dumps(what)
        except (TypeError, ValueError, RecursionError) as error:
            line = json.dumps({"id": what.get("id"), "error": f"its reply is not JSON: {error}"})
        telling.write(line.encode("utf-8", "replace") + b"\n")
        telling.flush()

    began = time.perf_counter()
    try:
        pipeline = LoadedPipeline(load(sys.argv[1], sys.argv[2]))
    except Wrong as error:
        tell({"error": str(error)[:MAX_TEXT_CHARS]})
        return 1
    except BaseException as error:  # noqa: BLE001 - importing it may even exit
        traceback.print_exc()
        tell({"error": f"{type(error).__name__}: {error}"[:MAX_TEXT_CHARS]})
        return 1
    tell(
        {
            "ready": pipeline.kind,
            "python": ".".join(map(str, sys.version_info[:3])),
            "ms": (time.perf_counter() - began) * 1000,
        }
    )
    for line in asking:
        asked = json.loads(line)
        tell({"id": asked["id"], **answer(pipeline, asked["ask"])})
    return 0


if __name__ == "__main__":
    sys.exit(main())
