"""Steps that read several passages at once in a model made for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from core.backends.fid import HOW, FusionReader
from core.backends.prompting.citations import NOT_ANSWERED, Draft
from core.backends.prompting.untrusted import harmless
from core.domain.errors import Unavailable
from core.domain.types import Ranking
from core.steps.base import StepBase
from core.steps.step import step

WRITTEN = 50  # tokens: the paper's answers are short, section 4


class ReadTogether(StepBase):
    """Fusion-in-Decoder."""

    def read_together(self, text: str, hits: Ranking) -> Draft:
        """Write a short answer from all `hits` at once, citing the passage with the most decoder attention.

        Raises Unavailable with instructions if the model is missing.
        """
        if hits:
            # Loading the model is no time of this question; the step says why if it cannot be.
            with self.context.trace.aside(), suppress(Unavailable):
                self._reader()
        return self._read_together(text, hits)

    @step("LLM", "read the passages together", returns=Draft)
    def _read_together(self, text: str, hits: Ranking) -> Draft:
        """Source: Izacard & Grave 2021, arXiv:2007.01282, section 3; attention as relevance: the same
        authors' arXiv:2012.04584, section 3. The passages are read as data by a model that was trained to
        copy an answer and follows no instructions.
        """
        inputs = self.span.attributes
        if not hits:
            inputs["note"] = "no passage was found to read"
            return Draft(NOT_ANSWERED, abstained=True)
        reader, passages = self._reader(), [hit.passage for hit in hits]
        plain = [replace(p, title=harmless(p.title), text=harmless(p.text)) for p in passages]
        read = reader.read(
            harmless(text), plain, max_tokens=WRITTEN, timeout=self.context.left(), cancel=self.context.cancel
        )
        inputs |= {
            "reader": reader.name,
            "tokens read": read.tokens_read,
            "tokens written": read.tokens_written,
        }
        if read.cut:
            inputs["read in part"] = [passages[at].id for at in read.cut]
        if not read.text:
            inputs["note"] = "the model wrote nothing"
            return Draft(NOT_ANSWERED, abstained=True)
        most = max(range(len(passages)), key=lambda at: (read.attention[at], -at))
        draft = Draft(f"{read.text} [{most + 1}]", (passages[most].id,), shown=tuple(p.id for p in passages))
        shares = {p.id: round(float(share), 4) for p, share in zip(passages, read.attention, strict=True)}
        self.span.output = replace(draft.recorded(), attention=shares)
        return draft

    def _reader(self) -> FusionReader:
        if self.context.fid is None:
            raise Unavailable(f"no Fusion-in-Decoder model is set: {HOW}")
        return self.context.fid()
