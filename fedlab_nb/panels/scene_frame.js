// The frame of a picture that is drawn here from data (`scene`), by front/; without a scene it is a frame as all others.
const SCENES = { race: createRace, hand: createHand };

function renderScene({ model, el }) {
  const endFrame = render({ model, el });
  const place = html("div", { className: "fl-scene" });
  place.dataset.lmSuppressShortcuts = "true";
  const body = html("div", { className: "scene-root" });
  place.attachShadow({ mode: "open" }).append(html("style", {}, SCENE_STYLE), body);
  el.append(place);
  let kind = "";
  let drawn = null; // what draws the scene that is shown

  let selection = readSelection();

  /** The client and the class that are looked at, as Python says. */
  function readSelection() {
    const { client = null, class_index: classIndex = null } = model.get("selection");
    return { client, classIndex };
  }

  function select(next) {
    selection = next;
    drawn?.select(selection);
  }

  /** A client or a class was chosen. */
  function choose(mark) {
    const count = (model.get("picked").count ?? 0) + 1;
    select(chooseMark(selection, mark));
    announceSelection(el, selection);
    model.set("picked", { count, method: null, client: mark.client, class_index: mark.classIndex, none: false });
    model.save_changes();
  }

  /** What a hand has set. */
  function give(values) {
    model.set("given", values);
    model.save_changes();
  }

  /** Hold a method in all pictures; once more lets go of it. */
  function pick(method) {
    const count = (model.get("picked").count ?? 0) + 1;
    model.set("picked", { count, method, client: null, class_index: null, none: false });
    model.save_changes();
  }

  function showScene() {
    const scene = model.get("scene");
    const isThere = Boolean(scene.kind);
    place.hidden = !isThere;
    for (const other of el.querySelectorAll(":scope > .fl-said, :scope > .fl-picture")) other.classList.toggle("fl-beside", isThere);
    if (!isThere) {
      drawn?.show(null);
      return;
    }
    if (kind !== scene.kind) {
      drawn?.destroy();
      kind = scene.kind;
      drawn = SCENES[kind]({ pick, choose, give });
      body.replaceChildren(drawn.element);
    }
    drawn.show(scene);
    drawn.hold(model.get("held"));
    drawn.select(selection);
  }

  function showTheme() {
    body.dataset.theme = isDark() ? "dark" : "light";
    drawn?.redraw();
  }

  place.inspect = () => drawn?.element.inspect() ?? null;
  const holdMethod = () => drawn?.hold(model.get("held"));
  const unwatch = watchTheme(showTheme);
  model.on("change:scene", showScene);
  model.on("change:held", holdMethod);
  const showSelection = () => select(readSelection());
  model.on("change:selection", showSelection);
  const unlink = watchSelection(el, select);
  showTheme();
  showScene();
  return () => {
    model.off("change:scene", showScene);
    model.off("change:held", holdMethod);
    model.off("change:selection", showSelection);
    unlink();
    unwatch();
    drawn?.destroy();
    endFrame();
  };
}
