"""What the tests read of a page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from ui.app.markup import NOTHING


def html(app: AppTest) -> str:
    """Everything the page shows as HTML."""
    return "\n".join(element.proto.body for element in app.main.get("html"))


def shown(app: AppTest) -> str:
    """Every message, caption, heading and text of the page, without the backslashes that escape them."""
    kinds = (app.error, app.warning, app.info, app.success, app.caption, app.markdown, app.subheader)
    return "\n".join(plain(element.value) for kind in kinds for element in kind)


def address(app: AppTest, name: str) -> str | None:
    """What the page's address says under a name."""
    value = app.query_params.get(name)
    return value[0] if isinstance(value, list) else value


def plain(text: str) -> str:
    """A message as it is read: without what escapes marks and keeps addresses from being links."""
    return text.replace(NOTHING, "").replace("\\", "")
