// The pictures of stored results. Each function brings its picture up to date with `state` (page.js); marks are kept and
// moved. A mark of a method has data-m. `svg.order`: marks by keyboard order.
/** A method's mark: a group that its look colours; the rest is made by `parts`. */
function mark(layer, name, parts) {
  const group = add(layer, "g", { class: "m", role: "button", tabindex: -1, "data-m": name });
  group.style.setProperty("--hex", METHOD.get(name).colour);
  parts(group, METHOD.get(name));
  return group;
}
/** What a mark says, on lines: for the tip, and for who cannot see it. */
function about_method(name, a, m) {
  const r = result(name, a, m);
  return `${METHOD.get(name).title}\n${exact(r)} (95 % band)\nseeds ${bySeed(r)}\n${dataSize(total(r))}: ${dataSize(r.up)} up, ${dataSize(r.down)} down`
    + (BOUNDS.includes(name) ? "" : `\n${METHOD.get(name).rounds}`);
}
const say = (group, words) => group.setAttribute("aria-label", words.replaceAll("\n", "; "));
function drawBars(svg) {
  const { width, height, axes, marks } = canvas(svg, "axes", "marks");
  const rows = methods.map((x) => x.name).sort((x, y) => result(y, state.a, state.m).mean - result(x, state.a, state.m).mean);
  const left = 26 + Math.max(...methods.map((x) => widthOf(x.short)));
  const [right, top, bottom] = [width - 74, 2, height - 24];
  const x = (share) => left + share * (right - left);
  const tall = (bottom - top) / Math.max(rows.length, 3);
  shareAxis(axes, x, [top, bottom], true, right - left > 240);
  chanceLine(axes, { x1: x(0.1), x2: x(0.1), y1: top, y2: bottom });
  const make = (name) => mark(marks, name, (g, { short, outline }) => {
    add(g, "rect", { class: "hit", rx: 3 });
    add(g, "path", { class: "shape", d: outline });
    add(g, "text", { class: "named" }, short);
    add(g, "rect", { class: "bar", rx: 1.5 });
    add(g, "path", { class: "whisker" });
    for (const seed of seeds) add(g, "circle", { class: "seed", r: 2.4, "data-seed": seed });
    add(g, "text", { class: "number", "dominant-baseline": "central" });
  });
  keyed(marks, rows, (name) => name, make, (g, name) => {
    const r = result(name, state.a, state.m);
    const [hit, shape, text, bar, whisker, ...rest] = g.children;
    const thick = Math.min(0.66 * tall, 24);
    place(g, { x: 0, y: top + (rows.indexOf(name) + 0.5) * tall });
    setAll(hit, { x: 0, y: -tall / 2, width, height: tall });
    shape.setAttribute("transform", `translate(${left - 10},0)`);
    setAll(text, { x: left - 20, y: 0, "text-anchor": "end", "dominant-baseline": "central" });
    setAll(bar, { x: left, y: -thick / 2, width: Math.max(0, x(r.mean) - left), height: thick });
    const [low, high, h] = [x(Math.max(0, r.mean - r.half)), x(Math.min(1, r.mean + r.half)), Math.min(4, thick / 2)];
    whisker.setAttribute("d", `M${low} ${-h}V${h}M${low} 0H${high}M${high} ${-h}V${h}`);
    seeds.forEach((_, i) => setAll(rest[i], { cx: x(r.accuracies[i]), cy: 0 }));
    const number = rest.at(-1);
    number.textContent = ` ${banded(r)}`; // the blank keeps it apart from the name where both are read
    setAll(number, { x: width - 2, y: 0 });
    say(g, `${METHOD.get(name).short} ${banded(r)}\n${about_method(name, state.a, state.m)}`);
  });
  svg.order = rows;
  $("bars-words").textContent = accuracyWords(state.chosen, state.a, state.m);
  table(svg, ["method", "accuracy", "± 95 % band", ...seeds.map((s) => `seed ${s}`)], () => rows.map((name) => {
    const r = result(name, state.a, state.m);
    return [METHOD.get(name).title, `${fixed(100 * r.mean, 1)} %`, `${fixed(100 * r.half, 1)} points`, ...r.accuracies.map((v) => `${fixed(100 * v, 1)} %`)];
  }));
}
function drawLines(svg) {
  const { width, height, axes, marks } = canvas(svg, "axes", "marks");
  const names = methods.map((x) => x.name);
  const left = 26 + Math.max(40, ...state.chosen.map((name) => widthOf(METHOD.get(name).short)));
  const [right, top, bottom] = [width - 46, 20, height - 40];
  const x = logScale(alphas[0], alphas.at(-1), left, right);
  const y = upAxes(axes, { left, right, top, bottom }, "α (smaller: more skewed)");
  const tight = x(alphas[2]) - x(alphas[1]) < 28;
  for (const alpha of alphas.filter((v) => !tight || Number.isInteger(Math.log10(v)))) add(axes, "text", { class: "quiet", x: x(alpha), y: bottom + 16, "text-anchor": "middle" }, alpha);
  const here = x(alphas[state.a]);
  add(axes, "line", { class: "now", x1: here, x2: here, y1: top - 4, y2: bottom });
  add(axes, "text", { class: "nowtext", x: here, y: top - 8, "text-anchor": "middle" }, `α = ${alphas[state.a]}`);
  const make = (name) => mark(marks, name, (g, { short, outline, dash }) => {
    add(g, "path", { class: "hit" });
    add(g, "path", { class: "area" });
    add(g, "path", { class: "line", "stroke-dasharray": dash });
    for (const alpha of alphas) add(g, "path", { class: "shape", d: outline, "data-alpha": alpha });
    add(g, "path", { class: "leader" });
    add(g, "text", { class: "label", "text-anchor": "end", "dominant-baseline": "central" }, short);
  });
  const starts = names.map((name) => y(result(name, 0, state.m).mean));
  const lit = names.map((_, i) => i).filter((i) => state.chosen.includes(names[i]));
  const spread = apart(lit.map((i) => starts[i]), 15, top + 4, bottom - 4);
  keyed(marks, names, (name) => name, make, (g, name) => {
    const [hit, area, line, ...rest] = g.children;
    const rows = alphas.map((_, i) => result(name, i, state.m));
    const along = (share) => rows.map((r, i) => `${x(alphas[i])} ${y(share(r))}`);
    const edges = [along((r) => Math.min(1, r.mean + r.half)), along((r) => Math.max(0, r.mean - r.half)).reverse()];
    area.setAttribute("d", `M${edges.flat().join("L")}Z`);
    for (const path of [hit, line]) path.setAttribute("d", `M${along((r) => r.mean).join("L")}`);
    alphas.forEach((v, i) => rest[i].setAttribute("transform", `translate(${x(v)},${y(rows[i].mean)}) scale(${i === state.a ? 1.3 : 0.9})`));
    const [leader, label] = rest.slice(-2);
    const i = names.indexOf(name);
    const at = lit.includes(i) ? spread[lit.indexOf(i)] : starts[i];
    leader.setAttribute("d", `M${left - 7} ${starts[i]}L${left - 15} ${at}`);
    setAll(label, { x: left - 18, y: at });
    say(g, about_method(name, state.a, state.m));
  });
  raise(marks);
  svg.order = names.slice().sort((p, q) => result(q, state.a, state.m).mean - result(p, state.a, state.m).mean);
  $("lines-words").textContent = `With ${plural(clients[state.m], "client")}: ${fallWords(state.chosen, state.m)}`;
  table(svg, ["method", ...alphas.map((v) => `α = ${v}`)], () => names.map((name) => [METHOD.get(name).title, ...alphas.map((_, i) => `${banded(result(name, i, state.m))} %`)]));
}
/** Marks in colour lie over the grey ones; the one that has the focus stays where it is, else it would lose it. */
function raise(marks) {
  for (const name of state.chosen) {
    const group = marks.pool.get(name);
    if (group && group !== document.activeElement) marks.append(group);
  }
}
const ALL_BYTES = methods.flatMap((x) => clients.flatMap((_, m) => alphas.map((_, a) => total(result(x.name, a, m)))));
function drawBytes(svg) {
  const { width, height, axes, marks } = canvas(svg, "axes", "marks");
  const names = methods.map((x) => x.name);
  const [left, right, top, bottom] = [8, width - 46, 8, height - 40];
  const [low, high] = [Math.min(...ALL_BYTES) / 1.5, Math.max(...ALL_BYTES) * 1.5];
  const x = logScale(low, high, left, right);
  const y = upAxes(axes, { left, right, top, bottom }, "bytes, both ways, all clients");
  for (let power = Math.ceil(Math.log10(low)); 10 ** power < high; power++) {
    add(axes, "line", { class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: top, y2: bottom });
    add(axes, "text", { class: "quiet", x: x(10 ** power), y: bottom + 16, "text-anchor": "middle" }, dataSize(10 ** power));
  }
  const make = ({ name }) => mark(marks, name, (g, { short, outline }) => {
    add(g, "circle", { class: "hit", r: 11 });
    add(g, "path", { class: "whisker" });
    add(g, "path", { class: "shape", d: outline });
    add(g, "text", { class: "label" }, short);
  });
  const points = names.map((name) => ({ name, text: METHOD.get(name).short, x: x(total(result(name, state.a, state.m))), y: y(result(name, state.a, state.m).mean) }));
  const named = points.filter((p) => state.chosen.includes(p.name)).concat(points.filter((p) => !state.chosen.includes(p.name)));
  const places = besidePoints(named, points.filter((p) => state.chosen.includes(p.name)), { left, right: width, top: top - 4, bottom });
  keyed(marks, points, (p) => p.name, make, (g, p) => {
    const r = result(p.name, state.a, state.m);
    const [, whisker, , label] = g.children;
    place(g, { x: p.x, y: p.y });
    whisker.setAttribute("d", `M0 ${y(Math.max(0, r.mean - r.half)) - p.y}V${y(Math.min(1, r.mean + r.half)) - p.y}`);
    const beside = places[named.indexOf(p)];
    setAll(label, { x: beside.x - p.x, y: beside.y - p.y });
    say(g, about_method(p.name, state.a, state.m));
  });
  raise(marks);
  svg.order = points.slice().sort((p, q) => p.x - q.x || p.y - q.y).map((p) => p.name);
  $("bytes-words").textContent = costWords(state.chosen, state.a, state.m);
  table(svg, ["method", "up", "down", "both", "accuracy"], () => svg.order.map((name) => {
    const r = result(name, state.a, state.m);
    return [METHOD.get(name).title, dataSize(r.up), dataSize(r.down), dataSize(total(r)), `${banded(r)} %`];
  }));
}
/** The table under a picture, filled while it is open. */
function table(picture, columns, rows) {
  const details = picture.closest(".card, details").querySelector(":scope > details") ?? picture.closest("details");
  details.fill = () => details.open && fillTable(details.querySelector(".scroll"), columns, rows());
  details.fill();
}
