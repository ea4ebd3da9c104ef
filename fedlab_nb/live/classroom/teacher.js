// The projector: asks the server four times a second what has arrived, and shows it. Names are text, never HTML.
import { html as element } from "./dom.js";
import { picture } from "./pen.js";
import { plural as many } from "./text.js";
const $ = (id) => document.getElementById(id);
let version = "", state = { sent: [], rows: [] }, chosen = null;
const percent = (share) => share === null ? "–" : `${(100 * share).toFixed(0)} %`;
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(bytes < 100000 ? 1 : 0)} kB`;

async function post(what, body = "{}") {
  const answer = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const said = await answer.json();
  $("told").textContent = said.error ?? (said.name ? `Loaded: ${said.name}.` : "");
  return look();
}

function bars() {
  return state.rows.map(({ title, of, own, digits }) => element("div", { className: "row" },
    element("span", {}, title, element("i", { className: "quiet" }, ` of ${of}`)),
    element("span", { className: "track", ariaHidden: "true" },
      element("span", { className: "own", style: { width: `${100 * (own ?? 0)}%` } }),
      element("span", { className: "digits", style: { left: `${100 * digits}%` } })),
    element("b", {}, percent(own)), element("i", { className: "quiet" }, percent(digits))));
}

function chips() {
  const most = Math.max(...state.sent.map((each) => each.bytes));
  return state.sent.map((each) => element("button", {
    type: "button", className: "chip", ariaPressed: String(each.seat === chosen), onclick: () => choose(each.seat),
    style: { "--part": `${(100 * each.bytes) / most}%`, "--hue": hue(each.seat) },
  }, element("span", {}, each.name), element("b", {}, kilobytes(each.bytes))));
}

const hue = (seat) => (seat * 137.5) % 360; // far apart for neighbours
/** The means of the sums as digits, in the colour of their student. */
function plane({ points, share, alike }) {
  $("plane").replaceChildren(...points.map(([seat, digit, x, y]) => element("b", {
    textContent: digit, className: [seat, null].includes(chosen) ? "" : "other", style: { "--x": x, "--y": y, "--hue": hue(seat) },
  })));
  $("plane").hidden = !points.length;
  $("plane").ariaLabel = `${many(points.length, "digit")}, coloured by student`;
  $("axes").textContent = points.length ? `Each student's mean of each digit, in the student's colour, on the two axes along which drawings vary most (${
    percent(share)} of it). The nearest mean of another student is of the same digit for ${alike} of ${points.length}.` : "";
}

function draw() {
  const { rounds } = state;
  if (state.plane) plane(state.plane);
  $("rounds").disabled = !state.sent.some((each) => each.network);
  $("round").textContent = !rounds ? "FENS weighs the networks, with phones that stay." : `FENS: ${rounds.round} of ${rounds.of} are done, with ${many(rounds.phones, "phone")}. Down ${
    kilobytes(rounds.networks)} each, and ${kilobytes(rounds.weights)} a round; up ${kilobytes(rounds.weights)}.`;
  const { sent } = state, tests = sent.reduce((sum, each) => sum + each.given, 0);
  $("bars").replaceChildren(...bars());
  $("sent").replaceChildren(...chips());
  $("tests").textContent = state.rows.length ? `bars: the class's ${many(tests, "drawing")}; marks: 360 digits` : "";
  $("bytes").textContent = sent.length ? `${sent.length}, in all ${kilobytes(sent.reduce((sum, each) => sum + each.bytes, 0))}` : "";
  if (!sent.some((each) => each.seat === chosen)) $("one").hidden = true;
}
/** What one student has sent, and what the sums show of the drawings. */
function choose(seat) {
  chosen = seat;
  const { name, bytes, drawings, means, network, given } = state.sent.find((each) => each.seat === seat);
  const parts = [means.length && "sums", network && "a network", given && many(given, "test drawing")].filter(Boolean);
  $("who").textContent = `${name}: ${kilobytes(bytes)}, made from ${many(drawings, "drawing")}: ${parts.join(", ")}. ${
    means.length ? "What its sums show at once, the mean of each digit (who computes gets each drawing out of them):" : "It shows no sums."}`;
  $("means").replaceChildren(...means.map(([c, count, mean]) => element("figure", {},
    picture(mean, `Mean of ${many(count, "drawing")} of a ${c}`), element("figcaption", {}, `${count} × ${c}`))));
  $("one").hidden = false;
  draw();
  $("one").scrollIntoView({ block: "nearest" });
}

async function look() {
  try {
    const now = await (await fetch(`state?since=${version}`)).json();
    state = { ...state, ...now };
    $("count").textContent = `${many(state.joined, "phone")} joined, ${many(state.sent.length, "message")} here`;
    $("kept").textContent = state.kept;
    if (now.version !== version) draw();
    version = now.version;
  } catch {
    $("count").textContent = "The class has ended.";
  }
}
$("load").addEventListener("click", async () => {
  const [file] = $("file").files;
  await post("load", file ? await file.text() : $("text").value);
  $("file").value = $("text").value = "";
});
$("out").addEventListener("click", () => post(`forget/${chosen}`));
$("rounds").addEventListener("click", () => post("rounds"));
$("close").addEventListener("click", () => { chosen = null; draw(); });
for (;;) {
  await look();
  await new Promise((done) => setTimeout(done, 250));
}
