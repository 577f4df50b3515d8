// Closes the sidebar when a page opens in a narrow window, as Streamlit itself does below 768 px.
// Loads what draws figures (4.7 MB) while the page is idle: the first figure would wait half a second for it.
export default function ({ data }) {
  if (data.figures) setTimeout(() => import(new URL(data.figures, document.baseURI)).catch(() => {}), 2000)
  if (!matchMedia("(max-width: 1000px)").matches) return
  document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click()
}
