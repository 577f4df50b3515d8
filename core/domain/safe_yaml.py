"""YAML from outside: no tag makes an object, dates stay text, and aliases count as what they repeat."""

from __future__ import annotations

from functools import cache
from typing import Any


def load(text: str, most: int) -> Any:
    """Return the value of a YAML document of at most `most` nodes. Raises ValueError for anything else."""
    import yaml

    try:
        return yaml.load(text, _loader(most))  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


@cache
def _loader(most: int) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            repeated = self.peek_event() if self.check_event(yaml.AliasEvent) else None
            before = self.nodes
            self.nodes += 1 if repeated is None else self.sizes.get(repeated.anchor, most)
            if self.nodes > most:
                raise yaml.YAMLError(
                    f"more than {most:,} values, or aliases that repeat as many or themselves"
                )
            anchor = None if repeated is not None else self.peek_event().anchor
            node = super().compose_node(parent, index)
            if anchor is not None:
                self.sizes[anchor] = self.nodes - before
            return node

        def __init__(self, text: str) -> None:
            super().__init__(text)
            self.sizes: dict[str, int] = {}

    Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)
    return Loader
