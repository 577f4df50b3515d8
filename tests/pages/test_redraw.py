"""A press of a button outlives that something else ended meanwhile."""

from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest

from ui.app import redraw


def page():
    import streamlit as st

    from ui.app import redraw

    @st.fragment(run_every=1.0)
    def look():
        redraw.page()

    look()
    if st.button("Run"):
        st.write("it runs")


@pytest.mark.trust
def test_a_button_pressed_while_something_ends_is_seen():
    at = AppTest.from_function(page).run()
    at.button[0].click().run()
    assert [one.value for one in at.markdown] == ["it runs"]


@pytest.mark.parametrize(
    ("drawn", "again"), [(["look"], 1), (["look", "other"], 1), (["around it"], 0), ([], 0), (None, 0)]
)
def test_only_a_look_by_itself_draws_the_page_again(drawn, again):
    with (
        patch("ui.app.redraw.get_script_run_ctx") as context,
        patch("ui.app.redraw.ThreadState.get") as now,
        patch("ui.app.redraw.st.rerun") as rerun,
    ):
        context.return_value.fragment_ids_this_run = drawn
        now.return_value.fragment_id = "look"
        redraw.page()
    assert rerun.call_count == again
