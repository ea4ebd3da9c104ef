// Drawing with SVG: elements that are kept and moved (page.css has them glide), axes, names that keep apart.
const NS = document.querySelector("svg").namespaceURI;
const still = matchMedia("(prefers-reduced-motion: reduce)");
/** A new SVG element with these attributes, as the last child of `parent`. */
function add(parent, name, attributes = {}, text = "") {
  const element = document.createElementNS(NS, name);
  setAll(element, attributes);
  if (text !== "") element.textContent = text;
  parent.append(element);
  return element;
}
const setAll = (element, values) => { for (const key in values) element.setAttribute(key, values[key]); };
const place = (element, { x, y }) => element.setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)})`);
/** Size of a picture's frame in pixels (measured by page.js), and the layers `names` of its drawing, made once. */
function canvas(svg, ...names) {
  const [width, height] = svg.size;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", svg.getAttribute("class") ?? svg.id);
  svg.layers ??= Object.fromEntries(names.map((name) => [name, add(svg, "g", { "data-layer": name })]));
  for (const name of ["axes", "over"]) svg.layers[name]?.replaceChildren();
  svg.layers.axes?.setAttribute("aria-hidden", "true");
  return { width, height, ...svg.layers };
}
/** Where a value stands on a logarithmic axis; in the middle if there is only one value. */
function logScale(low, high, from, to) {
  if (low === high) return () => (from + to) / 2;
  return (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
}
/** Grid lines and percents from 0 to 100. span: ends of the lines across; along: where a share stands. */
function shareAxis(layer, along, [from, to], upright, many) {
  for (const share of many ? [0, 0.2, 0.4, 0.6, 0.8, 1] : [0, 0.5, 1]) {
    const at = along(share);
    const line = upright ? { x1: at, x2: at, y1: from, y2: to } : { x1: from, x2: to, y1: at, y2: at };
    add(layer, "line", { class: share ? "grid" : "axis", ...line });
    add(layer, "text", { class: "quiet", ...(upright ? { x: at, y: to + 16, "text-anchor": "middle" } : { x: to + 6, y: at + 4 }) }, percent(share));
  }
}
/** A dotted line where guessing would be. */
const chanceLine = (layer, ends, words) => {
  add(layer, "line", { class: "chance", ...ends });
  if (words) add(layer, "text", { class: "quiet", "text-anchor": "end", "font-size": 11, ...words }, "guessing");
};
/** Axes of a picture whose shares go up: percents, guessing, and what goes across. Returns where a share stands. */
function upAxes(layer, { left, right, top, bottom }, across) {
  const y = (share) => bottom - share * (bottom - top);
  shareAxis(layer, y, [left, right], false, true);
  chanceLine(layer, { x1: left, x2: right, y1: y(0.1), y2: y(0.1) }, { x: right, y: y(0.1) - 4 });
  add(layer, "text", { class: "quiet", x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle" }, across);
  return y;
}
/** Places for names that stand at `ys`: in the same order, at least `gap` apart, between low and high. */
function apart(ys, gap, low, high) {
  const order = ys.map((y, i) => [y, i]).sort((a, b) => a[0] - b[0]);
  const places = order.map(([y]) => y);
  for (let i = 0; i < places.length; i++) places[i] = Math.max(places[i], i ? places[i - 1] + gap : low);
  for (let i = places.length - 1; i >= 0; i--) places[i] = Math.min(places[i], i === places.length - 1 ? high : places[i + 1] - gap);
  return ys.map((_, i) => places[order.findIndex(([, one]) => one === i)]);
}

const letters = document.createElement("canvas").getContext("2d");
letters.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
/** Width of a text in pixels, in the bold letters of the pictures. */
const widthOf = (text) => letters.measureText(text).width;
/** Where names stand beside their points {x, y, text}: right, left, above or below, wherever they meet the fewest others. */
function besidePoints(points, obstacles, box) {
  const taken = obstacles.map(({ x, y }) => [x - 6, x + 6, y - 6, y + 6]);
  return points.map(({ x, y, text }) => {
    const wide = widthOf(text) + 2;
    const options = [[11, 0], [-11, 1], [0, 0.5]].flatMap(([dx, anchor]) => (anchor === 0.5 ? [-15, 15, -28, 28] : [0, -9, 9, -18, 18]).map((dy) => {
      const left = x + dx - anchor * wide;
      return [left, left + wide, y + dy - 7, y + dy + 7, Math.abs(dy) + (anchor ? 4 : 0)];
    }));
    const cost = ([l, r, t, b, far]) => far / 10
      + taken.reduce((s, [l2, r2, t2, b2]) => s + Math.max(0, Math.min(r, r2) - Math.max(l, l2)) * Math.max(0, Math.min(b, b2) - Math.max(t, t2)), 0)
      + 40 * (Math.max(0, box.left - l) + Math.max(0, r - box.right) + Math.max(0, box.top - t) + Math.max(0, b - box.bottom));
    const best = options.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(best);
    return { x: best[0], y: (best[2] + best[3]) / 2 + 4 };
  });
}
/** Fill the table under a picture: names of the columns, rows whose first cell is a heading. */
function fillTable(box, columns, rows) {
  const row = (cells) => html("tr", {}, ...cells.map((cell, i) => html(i ? "td" : "th", i ? {} : { scope: "row" }, cell)));
  const head = html("tr", {}, ...columns.map((cell) => html("th", { scope: "col" }, cell)));
  box.replaceChildren(html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows.map(row))));
}
