// Closes the sidebar when a page opens in a narrow window, as Streamlit itself does below 768 px.
export default function () {
  if (!matchMedia("(max-width: 1000px)").matches) return
  document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click()
}
