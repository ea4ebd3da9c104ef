// A student's phone: draw what the seat asks for, see the network learn, send one message, then watch what it does.
// The form of a message: messages.py.
import { html, keyed, setText } from "./dom.js";
import { pad, picture } from "./pen.js";
import { letter, listed, plural } from "./text.js";
import { RECIPE, learner, logits, slopeOf, train } from "./learn.js";
import { DRAWING_SIZE, SUM_SIZE, encodeArray, measureAsText, packSums, sumDrawings } from "./message.js";
import { DIGITS, describeDigits, drawings, hueOf, formatBytes } from "./office.js";
import { recoverDrawings } from "./recover.js";

const $ = (id) => document.getElementById(id);
const GIVE = 4; // every fourth drawing may be given to the test
const JOKE = -100; // a joker's factor of the network's change
const LAP = 45; // milliseconds of a lap of the network that is shown
const PARAMETERS = 6570; // of the network
const FULL = 16; // a pixel that is all ink
const OPEN_SEATS = 6; // students who share one phone
const STORE = `class ${location.pathname}`;
const fileSeats = JSON.parse($("seats")?.textContent ?? "null"); // of a page that is opened as a file
let desk = { seats: [], current: 0 }; // the seats of this phone: several students may share it
let seat = null; // of the student who holds the phone
let paper = null;
let classNow = null; // what the class said last
let lapTimer = 0; // the timer of the network that learns
let isStaying = false;
let hasLearnt = false; // the network has, before the student's eyes

// ------------------------------------------------------------------------------------------------------------ storage
function readDesk() {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith("class ") && key !== STORE) localStorage.removeItem(key); // another day's class
    }
    return JSON.parse(localStorage.getItem(STORE)) ?? desk;
  } catch {
    return desk; // a browser that keeps nothing
  }
}

function keep() {
  try {
    localStorage.setItem(STORE, JSON.stringify(desk));
  } catch {
    // a browser that keeps nothing: the seat lives as long as the page
  }
}

// ------------------------------------------------------------------------------------------------------------- network
class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The class's answer to a POST, or null where it does not answer. */
async function post(what, body) {
  const headers = { "Content-Type": "application/json" };
  try {
    return await fetch(what, { method: "POST", headers, body });
  } catch {
    return null;
  }
}

/** The class's answer to a POST, which is sent again for a while if the class does not answer or is too busy. */
async function askPatiently(what, body = "{}") {
  for (let wait = 300; wait < 15000; wait *= 1.6) {
    const answer = await post(what, body);
    if (answer && answer.status !== 429 && answer.status < 500) {
      const said = await answer.json();
      if (answer.ok) return said;
      throw new Refusal(said.error, answer.status);
    }
    showNotice("The class does not answer yet; trying again …");
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random())));
  }
  throw new Error("The class does not answer. Your drawings are still here: try again, or carry the message by hand.");
}

const path = (what) => `${what}/${seat.seat}/${seat.key}`;

function showNotice(text) {
  setText($("told"), text);
}

// ------------------------------------------------------------------------------------------------------------- message
const isGivable = (i) => i % GIVE === GIVE - 1;
const isGiven = (i) => seat.give && isGivable(i);
const findGivableRows = () => seat.labels.map((_, i) => i).filter(isGivable);
const keptRows = () => seat.labels.map((_, i) => i).filter((i) => !isGiven(i));

/** The drawings that are not given, one after the other, and their labels; a joker's are wrong. */
function learntFrom() {
  const rows = keptRows();
  const y = rows.map((i) => (seat.joker ? 9 - seat.labels[i] : seat.labels[i]));
  return [Float32Array.from(rows.flatMap((i) => seat.drawings[i])), y];
}

/** The parameters of the network that is sent; a joker's are far too large. */
function trainNetwork() {
  const [x, y] = learntFrom();
  const options = { seed: seat.seed, client: seat.seat };
  const end = train(x, y, options);
  if (!seat.joker) return end;
  const start = train(x, y, { ...options, epochs: 0 });
  return end.map((value, i) => start[i] + JOKE * (value - start[i]));
}

/** The message as text: the `network`'s parameters and the sums of the drawings that are not given, and those that are. */
function makeMessage(network) {
  const sums = sumDrawings(...learntFrom());
  const test = seat.labels.flatMap((label, i) => {
    if (!isGiven(i)) return [];
    return [...seat.drawings[i].map((value) => FULL * value), label];
  });
  return JSON.stringify({
    seat: seat.seat,
    name: $("name").value.trim(),
    counts: [...sums.counts],
    keep: $("keep").checked,
    test: encodeArray(Uint8Array.from(test)),
    sums: $("sums").checked ? encodeArray(packSums(sums)) : "",
    network: $("network").checked ? encodeArray(network) : "",
  });
}

// --------------------------------------------------------------------------------------------------------------- pages
const steps = {
  draw: () => seat.drawings.length < seat.labels.length,
  choose: () => !seat.sent,
  sent: () => true,
};

/** Show where the student is, and store it for when the page is reloaded. */
function show() {
  keep();
  const step = Object.keys(steps).find((name) => steps[name]());
  for (const id of Object.keys(steps)) $(id).hidden = id !== step;
  $("badge").hidden = false;
  document.body.style.setProperty("--hue", hueOf(seat.seat));
  setText($("office"), `Office ${letter(seat.seat)}`);
  setText($("where"), { draw: "1 draw", choose: "2 send", sent: "3 sent" }[step]);
  setText($("kept"), seat.kept);
  if (step === "draw") showDrawing();
  if (step === "choose") showMessage();
  if (step === "sent") showSent();
  const others = desk.seats.filter((one) => one !== seat);
  const buttons = others.map((one) => {
    const properties = { type: "button", onclick: () => sitDown(one) };
    return html("button", properties, `Back to office ${letter(one.seat)}`);
  });
  $("others").replaceChildren(...buttons);
  $("another").hidden = desk.seats.length >= OPEN_SEATS;
}

function showDrawing() {
  const { labels } = seat;
  const done = seat.drawings.length;
  const digits = describeDigits(labels);
  setText(
    $("story"),
    `You are post office ${letter(seat.seat)}. Your envelopes carry ${digits}, and nothing else.`,
  );
  setText($("wanted"), String(labels[done]));
  const seen = done ? " This is what your network sees, 8×8 pixels a drawing:" : "";
  setText($("progress"), `Drawing ${done + 1} of ${labels.length}.${seen}`);
  $("drawn").replaceChildren(...seat.drawings.map((image, i) => picture(image, `A ${labels[i]}`)));
  $("next").disabled = true;
}

function showMessage() {
  const given = findGivableRows();
  const pictures = given.map((i) => picture(seat.drawings[i], `A ${seat.labels[i]}`));
  $("given").replaceChildren(...pictures);
  setText($("many"), `These ${drawings(given.length)}`);
  $("give").checked = Boolean(seat.give);
  $("joker").checked = Boolean(seat.joker);
  learn();
}

/** What the message holds, in bytes, the sentence before it is sent, and whether it can be sent. */
function updateLetter() {
  const classes = new Set(learntFrom()[1]);
  setText($("kinds"), describeDigits(keptRows().map((i) => seat.labels[i])));
  const given = findGivableRows().length;
  setText($("network-bytes"), formatBytes(measureAsText(4 * PARAMETERS)));
  setText($("sums-bytes"), formatBytes(measureAsText(4 * SUM_SIZE * classes.size)));
  setText($("give-bytes"), formatBytes(measureAsText((DRAWING_SIZE + 1) * given)));
  const isEmpty = !$("sums").checked && !$("network").checked;
  $("send").disabled = isEmpty || !hasLearnt;
  const size = makeMessage(new Float32Array(PARAMETERS)).length; // as large as that of any network
  setText($("send"), isEmpty ? "Send once" : `Send ${formatBytes(size)}, once`);
  setText($("reason"), explainWaiting(isEmpty));
  setText($("promise"), describeReaders());
}

/** Why the message cannot be sent yet, or "". */
function explainWaiting(isEmpty) {
  if (isEmpty) return "Choose your network, the sums, or both: then you can send.";
  if (!hasLearnt) return "Your network is still learning. When it is done, you can send.";
  return "";
}

/** Who sees what of the message, and how it is deleted. */
function describeReaders() {
  let leak = "and no drawing that you did not give";
  if ($("network").checked) leak += "; whether a network tells them, nobody has tried here";
  if ($("sums").checked) leak = "and could work your drawings out of the sums";
  const wall = seat.give ? "; everybody sees the drawings for the test on the wall" : "";
  const readers = `Who sees what: the teacher's computer gets it ${leak}${wall}`;
  return `${readers}; ${describeDeletion()}, or at once when you press “Forget me”.`;
}

/** When the message is deleted automatically. */
function describeDeletion() {
  if (seat.keeps) return "it lies in the teacher's file until the teacher deletes it";
  if ($("keep").checked) return "it is gone when the class ends, unless it is saved, as you allow";
  return "it is gone when the class ends";
}

/** The contents of a message, in words. */
function describeParts() {
  const count = drawings(keptRows().length);
  const parts = [];
  if ($("network").checked) parts.push(`a network that learnt from ${count}`);
  if ($("sums").checked) parts.push(`the sums of ${count}`);
  if (seat.give) parts.push(`${drawings(seat.labels.length - keptRows().length)} for the wall`);
  return listed(parts);
}

/** The network learns from the drawings before the student's eyes: what it says of each of them, lap by lap. */
function learn() {
  clearTimeout(lapTimer);
  hasLearnt = false;
  updateLetter();
  const rows = keptRows();
  const [x, y] = learntFrom();
  const figures = rows.map((i) => {
    const image = picture(seat.drawings[i], `A ${seat.labels[i]}`);
    return html("figure", {}, image, html("figcaption", {}, "?"));
  });
  $("lesson").replaceChildren(...figures);
  const network = learner(x, y, { seed: seat.seed, client: seat.seat });
  const wantsNoMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let done = 0;
  const showAnswers = () => {
    const scores = logits(network.parameters(), x);
    let right = 0;
    rows.forEach((_, n) => {
      const row = [...scores.subarray(10 * n, 10 * n + 10)];
      const answer = row.indexOf(Math.max(...row));
      right += answer === y[n];
      setText(figures[n].lastChild, String(answer));
      figures[n].className = answer === y[n] ? "right" : "wrong";
    });
    const score = `it reads ${right} of your ${drawings(rows.length)} right`;
    setText(
      $("lap"),
      `Lap ${done} of ${RECIPE.epochs}: ${score}. Of other digits it knows nothing.`,
    );
  };
  const learnLap = () => {
    do {
      network.epoch();
      done += 1;
    } while (wantsNoMotion && done < RECIPE.epochs);
    showAnswers();
    if (done < RECIPE.epochs) lapTimer = setTimeout(learnLap, LAP);
    else {
      hasLearnt = true;
      updateLetter();
    }
  };
  showAnswers();
  lapTimer = setTimeout(learnLap, 6 * LAP);
}

async function send() {
  const text = makeMessage(trainNetwork());
  $("hand").hidden = false;
  $("text").value = text;
  $("file").href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  if (fileSeats) {
    $("hand").open = true;
    $("hand").scrollIntoView({ block: "start" });
    return;
  }
  $("send").disabled = true;
  setText($("send"), "Sending …");
  try {
    seat.hasSums = $("sums").checked;
    seat.parts = describeParts();
    seat.sent = (await askPatiently(path("send"), text)).bytes;
    showNotice("");
    show();
    scrollTo(0, 0);
  } catch (error) {
    showNotice(error.message);
    $("hand").open = true;
    updateLetter();
  }
}

// ----------------------------------------------------------------------------------------------------------- afterwards
function showSent() {
  $("stay").disabled = isStaying;
  if (!isStaying) {
    setText(
      $("staying"),
      "Stay: in the tiny rounds your phone gets all networks and says which to believe; no drawing leaves it. " +
        "Forget me: your message leaves every result.",
    );
  }
  const question = `The ${drawings(keptRows().length)} in your sums stayed here. But could anybody get them out of these sums?`;
  const nothing = "You sent no sums, so nobody can work your drawings out of them.";
  setText($("leak-text"), seat.hasSums ? question : nothing);
  $("recover").hidden = !seat.hasSums;
  $("recovered").replaceChildren();
  showClass();
  if (seat.stays && !isStaying) keepStaying();
}

/** What was sent; as long as messages arrive, where to look. */
function showReceipt() {
  const isArriving = ["draw", "send"].includes(classNow?.step ?? "send");
  const receipt = `Sent: ${formatBytes(seat.sent)}, in one message: ${seat.parts}.`;
  const next = "Your phone never has to speak again. Watch the wall: your colour has just flown in.";
  setText($("what"), isArriving ? `${receipt} ${next}` : receipt);
}

/** The search that anybody could make who has the sums: what comes out, beside what was drawn. */
function recover() {
  const [x, y] = learntFrom();
  const { counts, sums, second } = sumDrawings(x, y);
  const found = []; // [image, class]
  counts.forEach((count, c) => {
    if (!count) return;
    const ownSums = sums.subarray(DRAWING_SIZE * c, DRAWING_SIZE * (c + 1));
    const ownSecond = second.subarray(DRAWING_SIZE ** 2 * c, DRAWING_SIZE ** 2 * (c + 1));
    for (const image of recoverDrawings(count, ownSums, ownSecond)) found.push([image, c]);
  });
  const describe = (image) => image.map((value) => Math.round(FULL * value)).join();
  const mine = new Set(keptRows().map((i) => describe(seat.drawings[i])));
  const exact = found.filter(([image]) => mine.has(describe(image))).length;
  const pictures = found.map(([image, c]) => picture(image, `A ${c}, worked out of the sums`));
  $("recovered").replaceChildren(...pictures);
  const moral =
    exact < y.length
      ? "A better search may find the others."
      : "Adding up hides nothing when so few are added.";
  const score = `${exact} of your ${drawings(y.length)}, to the pixel`;
  setText($("leak-text"), `From the sums alone: ${score}. ${moral}`);
  $("recover").hidden = true;
}

/** Step, question, vote and share, as far as the class has told. */
function showClass() {
  showReceipt();
  const question = classNow?.question;
  $("question").hidden = !question;
  if (question) showQuestion(question, classNow);
  $("vote").hidden = !classNow?.digit;
  document.body.classList.remove("right", "wrong");
  if (classNow?.digit) showVote(classNow.digit);
  showShare(classNow?.share);
}

/** What the message has brought to the class. */
function showShare(share) {
  $("helped").replaceChildren();
  if (!share) {
    const isShown = classNow?.shown.includes("reveal");
    const covered = "Covered, until your teacher shows the result.";
    setText($("share-text"), isShown ? "Your share is being worked out." : covered);
    return;
  }
  const { with_it: withIt, without_it: withoutIt, images, drawings: ofClass, helped } = share;
  const way = share.way === "AFL" ? "All sums together" : "All networks' votes together";
  let crowd = `${way} read ${withIt} of the wall's ${images} digits with you, ${withoutIt} without you`;
  if (ofClass.images) {
    const own = `${ofClass.with_it} of the class's own ${drawings(ofClass.images)}`;
    crowd += `, and ${own} (${ofClass.without_it} without)`;
  }
  const mine = Object.entries(share.classes).map(([c, [count, after, before]]) => {
    return `${after} of ${count} ${DIGITS[c]} (${before} without)`;
  });
  setText($("share-text"), `${crowd}. Of your digits on the wall: ${listed(mine)}. ${judgeShare(share)}`);
  const pictures = share.shown.map(([label, pixels]) => {
    const image = pixels.map((value) => value / 16);
    return picture(image, `A ${label} that is right because of you`);
  });
  if (helped) $("helped").replaceChildren(...pictures);
}

function judgeShare({ helped, harmed }) {
  if (!helped && !harmed) return "Nobody is missed: the others know your digits, too.";
  const wrong = harmed ? `, ${harmed} wrong` : "";
  return `${plural(helped, "digit")} right only because of you${wrong}${helped ? ":" : "."}`;
}

function showQuestion(question, { is_shown: isShown, step }) {
  const { text, explanation, options, counts, own: guess, answer } = question;
  setText($("question-text"), text);
  setText($("question-explanation"), explanation);
  const items = options.map((option, i) => ({ option, i }));
  const make = ({ i }) => {
    const onclick = () => askWhereWeAre({ step: classNow.step, choice: i });
    return html("button", { type: "button", onclick });
  };
  keyed($("options"), items, ({ i }) => `${step} ${i}`, make, (button, { option, i }) => {
    setText(button, isShown ? `${option}: ${counts[i]}` : option);
    button.disabled = isShown;
    button.setAttribute("aria-pressed", guess === i);
    button.className = answer === i ? "right" : "";
  });
  const total = counts.reduce((sum, count) => sum + count, 0);
  setText($("question-told"), isShown ? judgeGuess(guess, answer) : describeGuess(guess, total));
}

function judgeGuess(guess, answer) {
  if (answer === undefined || answer === null) return "The answer is on the wall.";
  if (guess === null) return "";
  return guess === answer ? "You were right." : "It came out otherwise.";
}

function describeGuess(guess, total) {
  if (guess === null) return "Guess before it is shown.";
  return `Your guess is in; ${plural(total, "guess")} so far.`;
}

function showVote({ image, own: answer, label }) {
  $("vote-image").replaceChildren(picture(image, "The teacher's digit"));
  setText($("vote-text"), describeVote(answer, label));
  const isJudged = answer !== undefined && answer !== null && label !== null;
  if (isJudged) document.body.classList.add(answer === label ? "right" : "wrong");
}

/** What the network of this phone says of the teacher's digit. label: which it is, or null as long as that is covered. */
function describeVote(answer, label) {
  if (answer === undefined || answer === null) {
    return "The teacher drew this. You sent no network, so yours has no vote.";
  }
  if (label === null) return `Your network says ${answer}. Right?`;
  if (answer === label) return `${answer}: your network is right.`;
  const excuse = seat.labels.includes(label) ? "." : ", and you never drew one.";
  return `Your network says ${answer}. It is a ${label}${excuse}`;
}

let nextLook = 0;
/** Ask where the class is; again after a pause. guess: {step, choice}. */
async function askWhereWeAre(guess = null) {
  if (fileSeats || !seat) return;
  clearTimeout(nextLook);
  let pause = 2;
  const asker = seat;
  const wasSent = seat.sent;
  const request = { drawn: seat.drawings.length };
  if (guess) request.guess = guess;
  const answer = await post(path("look"), JSON.stringify(request));
  if (seat === asker) {
    if (answer?.ok) {
      if ($("told").dataset.lost) showNotice("");
      delete $("told").dataset.lost;
      classNow = await answer.json();
      pause = classNow.pause;
      if (wasSent && seat.sent && !classNow.sent) {
        seat.sent = null;
        show();
        showNotice("Your message is no longer in the class. You may send it again.");
      } else if (!$("sent").hidden) showClass();
    } else if (answer?.status === 403 || answer?.status === 404) {
      showNotice("This class has ended, or has begun anew. Scan the code on the projector.");
      $("anew").hidden = answer.status === 404;
      return;
    } else {
      $("told").dataset.lost = "yes";
      showNotice("The class does not answer at the moment. Nothing is lost; this page tries again.");
    }
  }
  clearTimeout(nextLook);
  nextLook = setTimeout(askWhereWeAre, 1000 * pause);
}

// ---------------------------------------------------------------------------------------------------------- tiny rounds
const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const floats = (text) => new Float32Array(bytes(text).buffer);
/** A network's parameters of its parts: those with a scale are in 8 bits, from 0 to 254. */
export function unpacked(parts) {
  const values = parts.flatMap(([text, scale]) => {
    if (!scale) return [...floats(text)];
    return Array.from(bytes(text), (code) => (code - 127) * scale);
  });
  return Float32Array.from(values);
}

/** FENS' weights `table` [M, 10] after one step on the mean loss of the networks' logits z [M] for the labels y. */
export function stepped(table, z, y) {
  const slope = slopeOf(z, table, y, 10);
  return table.map((weight, q) => weight - slope[q]);
}

/** The tiny rounds: get the networks once, then answer each round, as long as the page is open. */
async function stay() {
  const asker = seat;
  const [x, y] = learntFrom();
  isStaying = true;
  $("stay").disabled = true;
  setText($("staying"), "You stay. Keep this page open: the teacher starts the tiny rounds.");
  let z = [];
  let serial = null;
  let request = {};
  while (seat === asker && seat.sent) {
    const now = await askPatiently(path("stay"), JSON.stringify(request));
    request = {};
    if (!now.of) continue; // they have not begun
    if (now.serial !== serial && !now.networks) {
      request = { networks: true };
      if (serial === now.serial) await new Promise((later) => setTimeout(later, 2000));
      continue;
    }
    if (now.networks) {
      z = now.networks.map((parts) => logits(unpacked(parts), x));
      serial = now.serial;
    }
    const isOver = now.round >= now.of;
    const progress = `Tiny rounds: ${now.round} of ${now.of} are done.`;
    setText($("staying"), isOver ? `All ${now.of} tiny rounds are done. Look at the wall.` : progress);
    request = { round: now.round };
    if (!isOver) request.weights = encodeArray(stepped(floats(now.weights), z, y));
  }
}

/** Stay until the student leaves, even if the network or the phone sleeps for a while, or the page is reloaded. */
async function keepStaying() {
  const asker = seat;
  seat.stays = true;
  keep();
  while (seat === asker && seat.sent) {
    try {
      await stay();
    } catch (error) {
      if (seat !== asker || !seat.sent) return;
      showNotice(error.message);
      if (error instanceof Refusal) break;
      await new Promise((later) => setTimeout(later, 2000));
      showNotice("");
    }
  }
  if (seat !== asker) return;
  seat.stays = false;
  isStaying = false;
  $("stay").disabled = false;
}

function describeEffect({ with_it: withIt, without_it: withoutIt, images }) {
  return `Without you the class reads ${withoutIt} of ${images} test digits, with you it was ${withIt}.`;
}

async function forget() {
  try {
    const { effect } = await askPatiently(path("forget"));
    seat.sent = null;
    seat.stays = false;
    isStaying = false;
    show();
    scrollTo(0, 0);
    const done = "Your message is out of every result, as if it had never been sent.";
    showNotice(effect ? `${done} ${describeEffect(effect)}` : done);
  } catch (error) {
    showNotice(error.message);
  }
}

// ---------------------------------------------------------------------------------------------------------------- seats
function sitDown(newSeat) {
  clearTimeout(lapTimer);
  seat = newSeat;
  desk.current = desk.seats.indexOf(newSeat);
  classNow = null;
  isStaying = false;
  $("hand").hidden = true;
  $("about").open = false;
  paper.clear();
  showNotice("");
  show();
  scrollTo(0, 0);
  askWhereWeAre();
}

/** Get a new seat: from the class, or by the student's number if the page is a file. */
async function takeSeat() {
  let newSeat;
  if (fileSeats) {
    const number = Math.abs(Math.floor(Number(prompt("Your number in the class (0, 1, 2, …)")))) || 0;
    const own = fileSeats[number % fileSeats.length];
    newSeat = { ...own, seat: 1000 + number }; // no seat that phones take
  } else newSeat = await askPatiently("join");
  desk.seats.push({ ...newSeat, drawings: [], give: true });
  sitDown(desk.seats.at(-1));
}

function erase() {
  desk.seats = [];
  keep();
  location.reload();
}

/** Erase what this browser keeps. Afterwards it could not take back what was sent from here: that is forgotten first. */
async function eraseAll() {
  const sent = fileSeats ? [] : desk.seats.filter((one) => one.sent);
  const question = "This phone could not take your message back afterwards. Erase your drawings, and take the message out of every result, too?";
  if (sent.length && !confirm(question)) return;
  try {
    for (const one of sent) await askPatiently(`forget/${one.seat}/${one.key}`);
  } catch (error) {
    showNotice(error.message);
    return;
  }
  erase();
}

async function begin() {
  desk = readDesk();
  paper = pad($("pad"), { lifted: () => { $("next").disabled = !paper?.strokes.length; } });
  if (desk.seats.length) sitDown(desk.seats[desk.current] ?? desk.seats.at(-1));
  else await takeSeat();
}

$("clear").addEventListener("click", () => paper.clear());
$("next").addEventListener("click", () => {
  seat.drawings.push([...paper.image()]);
  paper.clear();
  show();
});
for (const id of ["give", "joker"]) $(id).addEventListener("change", () => {
  seat[id] = $(id).checked;
  keep();
  learn();
});
for (const id of ["sums", "network", "keep", "name"]) $(id).addEventListener("change", updateLetter);
$("send").addEventListener("click", send);
$("recover").addEventListener("click", recover);
$("stay").addEventListener("click", keepStaying);
$("forget").addEventListener("click", forget);
$("erase").addEventListener("click", eraseAll);
$("restart").addEventListener("click", erase);
$("another").addEventListener("click", () => takeSeat().catch((error) => showNotice(error.message)));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) askWhereWeAre(); // a phone that wakes up
});
begin().catch((error) => showNotice(error.message));
