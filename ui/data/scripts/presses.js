// Reports presses on elements with data-press, and the keys of `data.keys`, to ui/app/scripts.py. Each report
// holds all recent presses in order: Streamlit keeps only the last report of those that arrive during a run.
export default function ({ data, setStateValue, parentElement }) {
  const kept = (parentElement.presses ??= { mount: `${Date.now()} ${Math.random()}`, made: 0, last: [] })
  kept.stop?.()
  const report = what => {
    kept.last = [...kept.last, [++kept.made, what]].slice(-100)
    setStateValue("pressed", { mount: kept.mount, last: kept.last })
  }
  const clicked = event => {
    const pressed = event.target.closest?.(".rs [data-press]")
    if (pressed) report(pressed.dataset.press)
  }
  const typed = event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable=true], [role=dialog]")) return
    const key = event.key.toLowerCase()
    if (key.length === 1 && data?.keys?.includes(key)) report(key)
  }
  document.addEventListener("click", clicked)
  document.addEventListener("keydown", typed)
  kept.stop = () => {
    document.removeEventListener("click", clicked)
    document.removeEventListener("keydown", typed)
  }
  return kept.stop
}
