"""Fusion-in-Decoder over a tiny real T5: what the decoder sees, in which order, and how it ends."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from core.backends.fid import MAX_PASSAGE_TOKENS, FusedReading, FusionInDecoder
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine.availability import missing, why_not
from core.engine.request import Request
from core.engine.resources import Resources
from core.routes.registry import routes
from tests.fakes import FakeEngine
from tests.tiny import bert, t5, tokenizer

PASSAGES = [
    Passage("a", "a", "Returns", "send the box back within 30 days"),
    Passage("b", "b", "", "a key is stored for 24 hours"),
    Passage("c", "c", "Customs", "the parcel is held by customs for days and days and days"),
    Passage("d", "d", "Express", "express parcel"),
    Passage("e", "e", "Half", "half \ud800 a pair, and 東京"),
]
FOREVER = {"timeout": 60.0, "cancel": threading.Event()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("t5")
    t5(made)
    return made


@pytest.fixture(scope="module")
def reader(folder: Path) -> FusionInDecoder:
    return FusionInDecoder(str(folder))


def read(reader: FusionInDecoder, passages: list[Passage], **more: object) -> FusedReading:
    return reader.read("is the parcel held", passages, **{"max_tokens": 8, **FOREVER, **more})


@pytest.mark.model
def test_one_passage_is_plain_t5(folder: Path, reader: FusionInDecoder) -> None:
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    words = AutoTokenizer.from_pretrained(folder)
    said = set()
    for passage in PASSAGES[:4]:
        text = f"question: is the parcel held title: {passage.title} context: {passage.text}"
        out = model.generate(**words(text, return_tensors="pt"), max_new_tokens=8, do_sample=False)
        found = read(reader, [passage])
        assert found.text == words.decode(out[0], skip_special_tokens=True).strip()
        assert found.attention == pytest.approx((1.0,), abs=1e-5)
        assert found.tokens_read == len(words(text).input_ids)
        said.add(found.text)
    assert any(said), "the tiny model writes something"


@pytest.mark.model
def test_the_decoder_sees_the_passages_encoded_one_by_one(reader: FusionInDecoder) -> None:
    """The first token's logits, computed from each passage's own encoding put one after another."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    model, words = reader._model, reader._tokenizer
    given = [f"question: q title: {p.title} context: {p.text}" for p in PASSAGES[:4]]
    states = [model.get_encoder()(**words(text, return_tensors="pt")).last_hidden_state for text in given]

    def logits(encoded: torch.Tensor, **more: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            outputs, begun = BaseModelOutput(encoded), torch.tensor([[0, 9, 12]])
            return model(encoder_outputs=outputs, decoder_input_ids=begun, **more).logits.numpy()

    def alone(*order: int) -> np.ndarray:
        return logits(torch.cat([states[at] for at in order], dim=1))

    with torch.no_grad():
        ours, mask, _ = reader._encoded(given, lambda: None)
    np.testing.assert_allclose(logits(ours, attention_mask=mask), alone(0, 1, 2, 3), atol=1e-4)
    np.testing.assert_allclose(alone(3, 1, 0, 2), alone(0, 1, 2, 3), atol=1e-4)
    assert np.abs(alone(0, 1) - alone(2, 3)).max() > 1e-2, "which passages are read matters"


@pytest.mark.model
def test_the_order_of_the_passages_changes_nothing(reader: FusionInDecoder) -> None:
    first, turned = read(reader, PASSAGES), read(reader, PASSAGES[::-1])
    assert first.text == turned.text
    assert first.attention == pytest.approx(turned.attention[::-1], abs=1e-4)
    assert sum(first.attention) == pytest.approx(1, abs=1e-5)
    assert len({round(share, 5) for share in first.attention}) == len(PASSAGES)


@pytest.mark.model
def test_what_is_too_long_is_cut_and_told_and_it_stops_when_asked(reader: FusionInDecoder) -> None:
    long = Passage("l", "l", "Box", "a box " * MAX_PASSAGE_TOKENS)
    found = read(reader, [PASSAGES[0], long])
    assert (found.cut, read(reader, PASSAGES).cut) == ((1,), ())
    assert found.tokens_read < 2 * MAX_PASSAGE_TOKENS
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        read(reader, PASSAGES, cancel=stop)
    with pytest.raises(ModelTimedOut, match="fewer"):
        read(reader, PASSAGES, timeout=-1.0)
    with pytest.raises(ModelFailed, match="no passage"):
        read(reader, [])


@pytest.mark.model
def test_writing_stops_within_a_token(reader: FusionInDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, steps = threading.Event(), []
    forward = reader._model.decoder.forward

    def slow(*args: object, **more: object) -> object:
        steps.append(1)
        if len(steps) == 3:
            stop.set()
        return forward(*args, **more)

    monkeypatch.setattr(reader._model.decoder, "forward", slow)
    monkeypatch.setattr(reader._model.generation_config, "eos_token_id", 999)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        read(reader, PASSAGES, max_tokens=500, cancel=stop)
    assert len(steps) == 3
    assert time.monotonic() - began < 30


@pytest.mark.model
def test_threads_do_not_disturb_each_other(reader: FusionInDecoder) -> None:
    from concurrent.futures import ThreadPoolExecutor

    alone = [read(reader, PASSAGES[at:]).text for at in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda at: read(reader, PASSAGES[at:]).text, range(4)))
    assert together == alone


@pytest.mark.model
def test_weights_as_the_authors_saved_them_are_the_same_model(
    folder: Path, reader: FusionInDecoder, tmp_path: Path
) -> None:
    """Their code wraps the encoder, and each of its blocks, before it saves."""
    import re
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "wrapped")
    file = tmp_path / "wrapped" / "model.safetensors"
    wrapped = lambda m: f"encoder.encoder.{m[1] + 'module.' if m[1] else ''}"  # noqa: E731
    whole = load_file(file).items()
    weights = {re.sub(r"^encoder\.(block\.\d+\.)?", wrapped, key): value for key, value in whole}
    assert any(".module." in key for key in weights)
    save_file(weights, file, {"format": "pt"})
    found, expected = read(FusionInDecoder(str(file.parent)), PASSAGES), read(reader, PASSAGES)
    assert found.text == expected.text
    assert found.attention == pytest.approx(expected.attention, abs=1e-4)


@pytest.mark.model
def test_what_is_no_t5_is_not_used_as_one(folder: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file
    from transformers import BertModel

    bert(BertModel).save_pretrained(tmp_path / "bert")
    tokenizer().save_pretrained(tmp_path / "bert")
    with pytest.raises(Unavailable, match="bert model, not a T5"):
        FusionInDecoder(str(tmp_path / "bert"))
    shutil.copytree(folder, tmp_path / "half")
    file = tmp_path / "half" / "model.safetensors"
    whole = load_file(file)
    save_file({k: v for k, v in whole.items() if "decoder.block.1" not in k}, file, {"format": "pt"})
    with pytest.raises(Unavailable, match=r"lacks \d+ of T5's weights"):
        FusionInDecoder(str(tmp_path / "half"))
    (tmp_path / "half" / "config.json").write_text(json.dumps({"model_type": "nonsense"}))
    with pytest.raises(Unavailable, match="fid_model") as caught:
        FusionInDecoder(str(tmp_path / "half"))
    assert "\n" not in str(caught.value)


@pytest.mark.model
def test_the_route_reads_with_the_model_of_the_settings(tmp_path: Path, folder: Path) -> None:
    class Real(FakeEngine):
        def fid(self) -> object:
            return Resources.fid(self)

    engine = Real(tmp_path, fid_model=str(folder))
    assert why_not(routes()["fid"], missing(engine)) is None
    result = engine.ask(
        Request(Query("where is the box"), "tiny", ("fid",), {"fid": {"passages": 3}})
    ).results[0]
    assert (result.status, result.error) == ("ok", None)
    inputs = result.spans[-1].attributes
    assert list(result.spans[-1].output.attention) == [hit.passage.id for hit in result.hits[:3]]
    assert sum(result.spans[-1].output.attention.values()) == pytest.approx(1, abs=1e-3)
    assert inputs["tokens read"] > inputs["tokens written"] > 0


def ask(tmp_path: Path, **parameters: int) -> tuple[FakeEngine, object]:
    engine = FakeEngine(tmp_path)
    request = Request(Query("What about a box that arrived crushed?"), "tiny", ("fid",), {"fid": parameters})
    return engine, engine.ask(request).results[0]


def test_it_cites_the_passage_with_most_attention_and_keeps_the_ranking(tmp_path: Path) -> None:
    engine, result = ask(tmp_path, passages=3)
    shares = result.spans[-1].output.attention
    most = max(shares, key=shares.get)
    assert len(shares) == 3
    assert result.citations == (most,) == ("crushed:0-80",)
    assert result.answer.endswith(f" [{list(shares).index(most) + 1}]")
    same = {"noise": {"count": 0, "fused_by": "min_max"}}  # hybrid search as fid does it, and nothing else
    ranked = engine.ask(Request(Query("What about a box that arrived crushed?"), "tiny", ("noise",), same))
    assert [h.passage.id for h in result.hits] == [h.passage.id for h in ranked.results[0].hits]


def test_nothing_found_and_nothing_written_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = FakeEngine(tmp_path, texts={}).ask(Request(Query("q"), "tiny", ("fid",))).results[0]
    assert (empty.abstained, empty.citations) == (True, ())
    nothing = lambda self, text, passages, **_: FusedReading("", (1.0,) * len(passages), 9, 1)  # noqa: E731
    monkeypatch.setattr("tests.fakes.Reader.read", nothing)
    _, silent = ask(tmp_path)
    assert (silent.abstained, silent.citations) == (True, ())
    assert silent.spans[-1].attributes["note"] == "the model wrote nothing"


def test_without_a_model_it_says_how_to_get_one(tmp_path: Path) -> None:
    assert "set fid_model" in missing(FakeEngine(tmp_path))[Need.FID]
    with pytest.raises(Unavailable, match="set fid_model"):
        Resources(Settings(home=tmp_path)).fid()
