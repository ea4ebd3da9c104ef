// A student's phone: draw what the seat asks for, then send one message. The form of a message: messages.py.
import { pad, picture } from "./pen.js";
import { logits, slopeOf, train } from "./learn.js";
import { gaussSums } from "./sums.js";
const $ = (id) => document.getElementById(id);
const GIVE = 4, JOKE = -100; // every fourth drawing may be given; a joker's factor of the network's change
const STORE = `class ${location.pathname}`;
const seats = JSON.parse($("seats")?.textContent ?? "null"); // of a page that is opened as a file
let own = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
let paper;
/** What the class answers to a POST; asked again for a while where it does not answer, or is too busy. */
async function ask(what, body = "{}") {
  for (let wait = 300; wait < 15000; wait *= 1.6) {
    const answer = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => null);
    if (answer && answer.status !== 429 && answer.status < 500) {
      const said = await answer.json();
      if (answer.ok) return said;
      throw new Error(said.error);
    }
    $("told").textContent = "The class does not answer yet; trying again …";
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random())));
  }
  throw new Error("The class does not answer. Your drawings are still here: try again, or give the message by hand.");
}

const isGiven = (i) => own.give && i % GIVE === GIVE - 1;
/** Show where the student is, and keep it for a page that is loaded anew. */
function show() {
  sessionStorage.setItem(STORE, JSON.stringify(own));
  const { drawings, labels } = own;
  const left = drawings.length < labels.length, step = own.sent ? "sent" : left ? "draw" : "choose";
  for (const id of ["draw", "choose", "sent"]) $(id).hidden = id !== step;
  $("progress").textContent = `Drawing ${drawings.length + 1} of ${labels.length}`;
  $("wanted").textContent = labels[drawings.length];
  const shown = () => drawings.map((image, i) => picture(image, `A ${labels[i]}`));
  $("drawn").replaceChildren(...shown());
  $("given").replaceChildren(...shown().filter((_, i) => i % GIVE === GIVE - 1));
  $("many").textContent = $("given").children.length;
  $("what").textContent = `${(own.sent / 1000).toFixed(1)} kB in one message. That was all: you may put the phone away, or stay.`;
  $("told").textContent = "";
  $("next").disabled = true;
  $("stay").disabled = false;
}
/** The drawings that are not given, one after the other, and their labels; a joker's are wrong. */
function learntFrom() {
  const rows = own.labels.map((_, i) => i).filter((i) => !isGiven(i));
  return [Float32Array.from(rows.flatMap((i) => own.drawings[i])), rows.map((i) => own.joker ? 9 - own.labels[i] : own.labels[i])];
}
const base64 = (array) => btoa(Array.from(new Uint8Array(array.buffer), (byte) => String.fromCharCode(byte)).join(""));
/** The message as text: sums and network of the drawings that are not given, and those that are. */
function message() {
  const { drawings, labels } = own, [x, y] = learntFrom();
  const { counts, sums, second } = gaussSums(x, y);
  const numbers = [];
  counts.forEach((count, c) => {
    if (count) numbers.push(...sums.subarray(64 * c, 64 * (c + 1)));
    for (let i = 64 * c; count && i < 64 * (c + 1); i++) numbers.push(...second.subarray(64 * i + (i % 64), 64 * (i + 1)));
  });
  const learnt = (epochs) => train(x, y, { seed: own.seed, client: own.seat, ...epochs });
  const start = learnt({ epochs: 0 });
  const network = () => learnt().map((end, i) => own.joker ? start[i] + JOKE * (end - start[i]) : end);
  const test = labels.flatMap((label, i) => isGiven(i) ? [...drawings[i].map((value) => 16 * value), label] : []);
  return JSON.stringify({
    seat: own.seat, name: $("name").value.trim(), counts: [...counts], keep: $("keep").checked, test: base64(Uint8Array.from(test)),
    sums: $("sums").checked ? base64(Float32Array.from(numbers)) : "", network: $("network").checked ? base64(network()) : "",
  });
}

async function send() {
  if (!$("sums").checked && !$("network").checked) return void ($("told").textContent = "Choose sums, a network, or both.");
  Object.assign(own, { give: $("give").checked, joker: $("joker").checked });
  const text = message();
  $("hand").hidden = false;
  $("text").value = text;
  $("file").href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  if (seats) return void ($("hand").open = true);
  $("send").disabled = true;
  try {
    own.sent = (await ask(`send/${own.seat}/${own.key}`, text)).bytes;
    show();
  } catch (error) {
    $("told").textContent = error.message;
    $("hand").open = true;
  }
  $("send").disabled = false;
}

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const floats = (text) => new Float32Array(bytes(text).buffer);
/** A network's parameters of its parts: those with a scale are in 8 bits, from 0 to 254. */
export const unpacked = (parts) => Float32Array.from(parts.flatMap(([text, scale]) => scale ? Array.from(bytes(text), (code) => (code - 127) * scale) : [...floats(text)]));
/** FENS' weights `table` [M, 10] after one step on the mean loss of the networks' logits z [M] for the labels y. */
export function stepped(table, z, y) {
  const slope = slopeOf(z, table, y, 10);
  return table.map((weight, q) => weight - slope[q]);
}
/** The tiny rounds: get the networks once, then answer each round, until the last. */
async function stay() {
  const [x, y] = learntFrom();
  $("stay").disabled = true;
  let z = [], answer = {};
  for (let done = -1, now = {}; !now.of || now.round < now.of;) {
    now = await ask(`stay/${own.seat}/${own.key}`, JSON.stringify(answer));
    $("what").textContent = now.of ? `Tiny rounds: ${now.round} of ${now.of} are done.` : "The teacher starts the tiny rounds; keep this page open.";
    const table = floats(now.weights ?? "");
    if (now.networks) z = now.networks.map((parts) => logits(unpacked(parts), x));
    const fresh = now.of && (now.round !== done || table.length !== 10 * z.length);
    if (!fresh) await new Promise((later) => setTimeout(later, 300));
    answer = !fresh ? {} : table.length !== 10 * z.length ? { networks: true } : { round: done = now.round, weights: base64(stepped(table, z, y)) };
  }
}

async function forget() {
  const error = await ask(`forget/${own.seat}/${own.key}`).then(() => null, (trouble) => trouble);
  if (!error) own.sent = null;
  show();
  $("told").textContent = error?.message ?? "Your message is out of every result, as if it had never been sent.";
}

async function begin() {
  if (!own && seats) {
    const seat = Math.abs(Math.floor(Number(prompt("Your number in the class (0, 1, 2, …)")))) || 0;
    own = { ...seats[seat % seats.length], seat: 1000 + seat, drawings: [] }; // no seat that phones take
  }
  own ??= { ...(await ask("join")), drawings: [] };
  $("kept").textContent = own.kept;
  paper = pad($("pad"), { lifted: () => { $("next").disabled = !paper?.strokes.length; } });
  show();
}
$("clear").addEventListener("click", () => paper.clear());
$("next").addEventListener("click", () => {
  own.drawings.push([...paper.image()]);
  paper.clear();
  show();
});
$("send").addEventListener("click", send);
$("stay").addEventListener("click", () => stay().catch((error) => { $("told").textContent = error.message; }));
$("forget").addEventListener("click", forget);
begin().catch((error) => { $("told").textContent = error.message; });
