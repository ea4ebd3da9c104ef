// The engine of a panel: a kernel, reached through an anywidget model. Gestures travel as small messages: one is under
// way, and only the latest waits. Arrays come as buffers. Only the kernel deals partitions and trains. It sends the
// partitions of the whole α slider ahead, so that moving it shows the piles without a round trip to the kernel.
// Several views may show one panel, and each receives the kernel's answers to all of them. So an answer is known by its
// setting, not by a number that one stage gave it, and a view follows the gestures of the others.
import { applyMoves, countCalls, countLabels, groupByOwner } from "./federation.js";
import { isSameSelection } from "./selection.js";
import { makeSettingKey } from "./state.js";

const BUSY = 1500; // milliseconds after which a kernel that has not begun to train is busy with something else
const BUSY_TEXT = "Python is busy with other cells; training starts when they are done.";
const PATIENCE = 4000; // milliseconds after which an answer is no longer waited for: the kernel is busy with a cell

/** A buffer as an array of this type; it may begin at any offset of the message. */
export function readBuffer(view, Type) {
  const start = view.byteOffset ?? 0;
  const bytes = (view.buffer ?? view).slice(start, start + view.byteLength);
  return new Type(bytes);
}

/** What the stage shows of the samples: about as the kernel says it, samples: {train, test} with labels and images. */
export function makeStageData(about, samples) {
  const data = { trainsNetworks: true, ...about, ...samples, table: null };
  Object.defineProperty(data, "storedSeeds", { get: () => data.table?.seeds ?? 0 });
  data.storedSetting = ({ alpha, clients }) => {
    const m = data.table?.clients.indexOf(clients) ?? -1;
    if (m < 0) return null;
    let a = 0;
    data.table.alphas.forEach((one, i) => {
      const isNearer = Math.abs(Math.log(one / alpha)) < Math.abs(Math.log(data.table.alphas[a] / alpha));
      if (isNearer) a = i;
    });
    return { a, m, alpha: data.table.alphas[a] };
  };
  data.stored = (name, { a, m }) => data.table.results[name]?.[m][a] ?? null;
  return data;
}

/** A name that no other view has. */
export const makeViewName = () => Math.random().toString(36).slice(2);

/** model: of the widget;   data: what the stage shows (see stage.js);   view: the name of this view.
    `receive(content, buffers)` takes a message. */
export function createKernelTransport(model, data, view = makeViewName()) {
  const revisions = new Map(); // what the stage calls each setting, by its key
  let partitions = null; // {clients, seed, owners: by α, before moves}, what the kernel has sent ahead
  let shown = null; // {revision, shards}, what the stage has been told last
  let current = null; // the key of the stage's setting
  let lastQuestion = null; // the name of the newest question about the federation, until it is answered
  let questions = 0;
  let listener = () => {};
  let underWay = null; // the message that an answer is waited for
  let waiting = null; // the latest one after it
  let timer = 0;
  let isAsking = false; // what everybody says of an image
  let imageAsked = null; // the next image to ask about
  let askTimer = 0;
  let selection = { client: null, classIndex: null }; // that the kernel knows of
  let busyTimer = 0; // until the kernel is known to have heard of a run

  function revisionOf(setting) {
    return setting === null ? 0 : revisions.get(makeSettingKey(setting)) ?? 0;
  }

  /** The owners at this α if they were sent ahead, else null. */
  function findOwners({ clients, seed }, alpha) {
    const isOfSetting = partitions !== null && partitions.clients === clients && partitions.seed === seed;
    return isOfSetting ? partitions.owners.get(alpha) ?? null : null;
  }

  /** Show the piles of a setting at once if they were sent ahead. The kernel is asked too, and its answer counts. */
  function showAhead({ revision, setting }) {
    const owners = findOwners(setting, setting.alpha);
    if (owners === null) return;
    showShards(revision, applyMoves(groupByOwner(owners, setting.clients), data.train.labels, setting.moves));
  }

  function showShards(revision, shards) {
    shown = { revision, shards };
    listener({ kind: "federation", revision, shards });
  }

  /** Whether the stage shows these already. */
  function isShown(revision, shards) {
    if (shown?.revision !== revision || shown.shards.length !== shards.length) return false;
    return shards.every((shard, k) => shard.length === shown.shards[k].length && shard.every((sample, i) => sample === shown.shards[k][i]));
  }

  /** Give a question about the federation a name, which the kernel's answer repeats. */
  function nameQuestion(message) {
    questions += 1;
    lastQuestion = `${view} ${questions}`;
    return { ...message, question: lastQuestion };
  }

  /** Send a question about the federation; of those that come while one is under way, the last is sent next. */
  function ask(message) {
    if (underWay !== null) {
      waiting = message;
      return;
    }
    underWay = message;
    model.send(message);
    timer = setTimeout(endQuestion, PATIENCE);
  }

  function endQuestion() {
    clearTimeout(timer);
    underWay = null;
    if (waiting === null) return;
    const next = waiting;
    waiting = null;
    ask(next);
  }

  /** Ask about an image; of a drawing the kernel needs the pixels. Only the latest request counts. */
  function askImage({ image, pixels }) {
    const isDrawn = !/^t?\d+$/.test(image);
    imageAsked = { kind: "ask", image, pixels: isDrawn ? Array.from(pixels) : [] };
    if (!isAsking) sendImage();
  }

  function sendImage() {
    isAsking = imageAsked !== null;
    if (!isAsking) return;
    model.send(imageAsked);
    imageAsked = null;
    askTimer = setTimeout(sendImage, PATIENCE);
  }

  /** Ask for a run; if the kernel does not answer, say why. */
  function train(message) {
    waiting = null; // it says the setting itself
    model.send(message);
    clearTimeout(busyTimer);
    const { isRun, isAfterRun = false } = message;
    if (isAfterRun) return; // the run that is under way says how far it is
    const job = { kind: "job", isRunning: true, isRun, share: 0, text: BUSY_TEXT };
    busyTimer = setTimeout(() => listener(job), BUSY);
  }

  /** Tell the kernel which client and class are chosen, where it does not know. */
  function tellSelection({ client, classIndex }) {
    if (isSameSelection(selection, { client, classIndex })) return;
    selection = { client, classIndex };
    model.send({ kind: "selection", client, class_index: classIndex });
  }

  const readers = {
    federation({ setting, question, sizes }, [buffer]) {
      if (underWay !== null && question === underWay.question) endQuestion();
      if (question === lastQuestion) lastQuestion = null;
      // Another view's hand, or a limit, has changed the setting; a newer question of this view will change it back.
      const isOther = current !== null && makeSettingKey(setting) !== current;
      if (isOther && lastQuestion === null) listener({ kind: "setting", setting });
      const samples = readBuffer(buffer, Uint32Array);
      let start = 0;
      const shards = sizes.map((size) => {
        start += size;
        return Array.from(samples.subarray(start - size, start));
      });
      const revision = revisionOf(setting);
      if (!isShown(revision, shards)) showShards(revision, shards);
      return null;
    },
    partitions({ clients, seed, alphas }, [buffer]) {
      const all = readBuffer(buffer, Uint16Array);
      const count = data.train.labels.length;
      const owners = new Map(alphas.map((alpha, i) => [alpha, all.subarray(i * count, (i + 1) * count)]));
      partitions = { clients, seed, owners };
      return { kind: "redraw" };
    },
    results(content, buffers) {
      const revision = revisionOf(content.setting);
      if (!content.names) return { ...content, revision, said: null, calls: null };
      const said = { methods: {}, clients: [] };
      const labels = readBuffer(buffers[0], Uint16Array);
      const count = data.test.labels.length;
      content.names.forEach((name, row) => {
        const own = labels.subarray(row * count, (row + 1) * count);
        if (typeof name === "number") said.clients[name] = own;
        else said.methods[name] = own;
      });
      return { ...content, revision, said, calls: countCalls(said.methods, data.classes.length) };
    },
    answers(content, [shares, recording]) {
      clearTimeout(askTimer);
      sendImage();
      const all = readBuffer(shares, Float32Array);
      const many = data.classes.length;
      const rows = new Map(content.names.map((name, i) => [name, all.subarray(i * many, (i + 1) * many)]));
      const curve = content.channels ? { values: readBuffer(recording, Float32Array), channels: content.channels } : null;
      return { kind: "answers", image: content.image, revision: revisionOf(content.setting), rows, row: content.row, curve, sums: content.sums ?? [] };
    },
    flights({ setting, flights }) {
      return { kind: "flights", revision: revisionOf(setting), flights };
    },
    stored({ table }) {
      data.table = table;
      return { kind: "redraw" };
    },
  };

  return {
    data,
    keepsRuns: true, // a run with all seeds goes on when the setting changes
    connect(receive) { listener = receive; },
    receive(content, buffers) {
      clearTimeout(busyTimer);
      const read = readers[content.kind];
      const message = read ? read(content, buffers) : content;
      if (message !== null) listener(message);
    },
    send(message) {
      if (message.setting) {
        current = makeSettingKey(message.setting);
        revisions.set(current, message.revision);
      }
      if (message.kind === "follow") return undefined; // the kernel has said it
      if (message.kind === "changed") return void tellSelection(message.state);
      if (message.kind === "select") {
        selection = message.selection;
        return undefined;
      }
      if (message.kind === "ask") return void askImage(message);
      if (message.kind === "deal") {
        showAhead(message);
        return void ask(nameQuestion(message));
      }
      if (message.kind === "train") return void train(nameQuestion(message));
      model.send(message);
    },
    preview(state, alpha) {
      const owners = findOwners(state, alpha);
      return owners === null ? null : countLabels(groupByOwner(owners, state.clients), data.train.labels, data.classes.length);
    },
    destroy() {
      clearTimeout(timer);
      clearTimeout(askTimer);
      clearTimeout(busyTimer);
      listener = () => {};
    },
  };
}
