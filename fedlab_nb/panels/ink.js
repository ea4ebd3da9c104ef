// A field to draw a digit in, and a button that empties it. Before this stands the text of `front/pen.js` and what it needs, which has `html` and `pad`.
function render({ model, el }) {
  const about = { role: "img", ariaLabel: "A field: draw a digit with the mouse, a pen or a finger." };
  const field = html("canvas", { className: "fl-field", width: 256, height: 256, ...about });
  const clear = html("button", { className: "jupyter-button" }, "Clear");
  const tell = (...names) => {
    const image = [...(drawing.image() ?? [])];
    for (const name of names) model.set(name, image);
    model.save_changes();
  };
  const drawing = pad(field, { moved: () => tell("seen"), lifted: () => tell("seen", "value") });
  clear.addEventListener("click", drawing.clear);
  el.replaceChildren(field, clear);
}
export default { render };
