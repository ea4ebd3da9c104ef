// A field to draw a digit in, and a button that empties it. Before this stands the text of `page/ink.js`, which has `pad`.
const GAP = 25; // milliseconds between two looks at a drawing that grows
function render({ model, el }) {
  const field = Object.assign(document.createElement("canvas"), { className: "fl-field", width: 256, height: 256 });
  field.setAttribute("role", "img");
  field.setAttribute("aria-label", "A field: draw a digit with the mouse, a pen or a finger.");
  const clear = Object.assign(document.createElement("button"), { className: "jupyter-button", textContent: "Clear" });
  let waiting = 0;
  const tell = (...names) => {
    waiting = clearTimeout(waiting);
    const image = [...(drawing.image() ?? [])];
    for (const name of names) model.set(name, image);
    model.save_changes();
  };
  const drawing = pad(field, { changed: () => { waiting ||= setTimeout(tell, GAP, "seen"); } });
  field.addEventListener("pointerup", () => tell("seen", "value"));
  clear.addEventListener("click", () => { drawing.clear(); tell("seen", "value"); });
  el.replaceChildren(field, clear);
  return () => clearTimeout(waiting);
}
export default { render };
