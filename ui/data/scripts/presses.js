// Reports presses on elements with data-press, which st.html draws by the thousand, to ui/app/presses.py.
export default function ({ setTriggerValue }) {
  const heard = event => {
    const pressed = event.target.closest?.(".rs [data-press]")
    if (pressed) setTriggerValue("pressed", pressed.dataset.press)
  }
  document.addEventListener("click", heard)
  return () => document.removeEventListener("click", heard)
}
