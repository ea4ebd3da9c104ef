// What a picture moves by itself when a slider changes: no kernel is asked, so it answers within a frame.
// `motion` (plots/moving.py) says what moves, in units of the SVG; `drivers` are the widgets that it follows.
const still = matchMedia("(prefers-reduced-motion: reduce)");
const byId = (svg, id) => svg.querySelector(`[id="${CSS.escape(id)}"]`);
const members = (group) => [...group.querySelectorAll("use, path")].filter((one) => !one.closest("defs, .touch"));
/** Give a bar these ends. */
const stretch = (group, left, top, right, bottom) => members(group)[0].setAttribute("d", `M${left} ${top}H${right}V${bottom}H${left}z`);

/** The value of a list of numbers at a place between two of them. */
function between(list, at) {
  const i = Math.max(0, Math.min(Math.floor(at), list.length - 1));
  const next = list[Math.min(i + 1, list.length - 1)];
  return list[i] + (next - list[i]) * (at - i);
}

/** Left, top, right and bottom of what a path draws; curves of circles do not leave the box of their points. */
function boxOf(path) {
  const numbers = path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
  const [x, y] = [0, 1].map((axis) => numbers.filter((_, i) => i % 2 === axis));
  return [Math.min(...x), Math.min(...y), Math.max(...x), Math.max(...y)];
}

/** How far along the points `x`, which do not fall, one has come at `here`: a place between two of them. */
function reached(x, here) {
  const i = x.findLastIndex((one) => one <= here + 0.1);
  return i < 0 ? 0 : i + (i + 1 < x.length ? Math.max(0, here - x[i]) / (x[i + 1] - x[i]) : 0);
}

/** A race at a step, which may lie between two: its SVG is drawn for the last one. */
function raceAt({ now, tracks, boxes }, svg) {
  const filled = boxes.map(({ id, shares }) => ({ group: byId(svg, id), shares })).map((one) => ({ ...one, box: boxOf(members(one.group)[0]) }));
  const lines = tracks.map((track) => ({ ...track, line: byId(svg, track.line), end: byId(svg, track.end), x: track.points.map((p) => p[0]), y: track.points.map((p) => p[1]) }));
  const clock = byId(svg, now.id);
  return (step) => {
    const here = between(now.x, step);
    clock.setAttribute("transform", `translate(${here - now.x.at(-1)})`);
    for (const { line, end, x, y, points, paid } of lines) {
      const seen = between(paid, step) > 0 && x[0] <= here + 0.1;
      const at = Math.max(0, Math.min(between(paid, step) - 1, reached(x, here)));
      const tip = [between(x, at), between(y, at)];
      members(line)[0]?.setAttribute("d", `M${[...points.slice(0, Math.floor(at) + 1), tip].map((p) => p.join(" ")).join("L")}`);
      end.setAttribute("transform", `translate(${tip[0] - x.at(-1)} ${tip[1] - y.at(-1)})`);
      for (const group of [line, end]) group.style.display = seen ? "" : "none";
    }
    for (const { group, shares, box: [left, top, right, bottom] } of filled) {
      stretch(group, left, top, left + between(shares, step) * (right - left), bottom);
    }
  };
}

/** Follow a widget's value: `draw(value)` at each frame while it changes, in one step where motion is to be reduced. */
function follow(value, play, draw) {
  let [shown, from, start, time, last, frame] = [value.get("value"), 0, 0, 0, 0, 0];
  const step = (now) => {
    const share = time ? Math.max(0, Math.min(1, (now - start) / time)) : 1;
    shown = from + (value.get("value") - from) * share;
    draw(shown);
    frame = share < 1 ? requestAnimationFrame(step) : 0;
  };
  const changed = () => {
    const now = performance.now();
    time = still.matches ? 0 : play?.get("playing") ? play.get("interval") : Math.min(now - last, 150);
    [from, start, last] = [shown, now, now];
    frame ||= requestAnimationFrame(step);
  };
  value.on("change:value", changed);
  draw(shown);
  return () => {
    value.off("change:value", changed);
    cancelAnimationFrame(frame);
  };
}

/** Bars of weights w / Σ w, as the sliders say at this moment. */
function shares({ bars, zero, one, hands }, svg, drivers) {
  const paths = bars.map((id) => members(byId(svg, id))[0]);
  return () => {
    const weights = hands.map((hand) => (typeof hand === "string" ? drivers[hand].get("value") : hand));
    const sum = weights.reduce((a, b) => a + b, 0);
    paths.forEach((path, i) => {
      const [left, , right] = boxOf(path);
      const share = sum > 0 ? weights[i] / sum : 1 / weights.length;
      path.setAttribute("d", `M${left} ${zero + (one - zero) * share}H${right}V${zero}H${left}z`);
    });
  };
}

/** Let an SVG move as its `motion` says when its drivers change; gives what ends it. */
function animate(svg, motion, drivers) {
  if (motion.kind === "race") return follow(drivers.value, drivers.play, raceAt(motion, svg));
  if (motion.kind !== "shares") return () => {};
  const draw = shares(motion, svg, drivers);
  const all = motion.hands.filter((hand) => drivers[hand]).map((hand) => drivers[hand]);
  for (const one of all) one.on("change:value", draw);
  draw();
  return () => {
    for (const one of all) one.off("change:value", draw);
  };
}

/** The models of the widgets {name: "IPY_MODEL_…"}; null where this page has no such thing. */
async function modelsOf(model, drivers) {
  try {
    const found = Object.entries(drivers).map(async ([name, id]) => [name, await model.widget_manager.get_model(id.replace("IPY_MODEL_", ""))]);
    return Object.fromEntries(await Promise.all(found));
  } catch {
    return null;
  }
}

