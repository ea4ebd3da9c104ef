// The entry of a panel in a notebook: the same stage as in the page without Python, with a kernel behind it.
import { html } from "./dom.js";
import { createKernelTransport, makeStageData, makeViewName, readBuffer } from "./kernel_transport.js";
import { createStage } from "./stage.js";
import { FIRST_STATE } from "./state.js";

const samplesByDigest = new Map(); // of all panels in this window: the same data are sent once
const MOST_SAMPLES_KEPT = 4;

function readPart({ side, channels }, [labels, images]) {
  const bytes = images ? readBuffer(images, Uint8Array) : new Uint8Array();
  const isThere = bytes.length > 0;
  return {
    labels: Array.from(readBuffer(labels, Uint16Array)),
    images: isThere ? Float32Array.from(bytes, (value) => value / 255) : null,
    side,
    channels,
  };
}

function keepSamples(digest, samples) {
  samplesByDigest.set(digest, samples);
  if (samplesByDigest.size > MOST_SAMPLES_KEPT) samplesByDigest.delete(samplesByDigest.keys().next().value);
}

/** What is in its shadow is not seen by the notebook's own keys, so that a letter typed there is no command of the
    notebook; with Control or Command held they work as everywhere, as Ctrl+S does. */
function keepPlainKeys(place) {
  const isModifier = ({ key }) => key === "Control" || key === "Meta";
  const keep = () => { place.dataset.lmSuppressShortcuts = "true"; };
  place.addEventListener("keydown", (event) => { if (isModifier(event)) delete place.dataset.lmSuppressShortcuts; });
  place.addEventListener("keyup", (event) => { if (isModifier(event)) keep(); });
  place.addEventListener("focusout", keep);
  keep();
}

/** Show the stage of `model` in `el`; what is returned takes everything away again. */
export function renderPanel({ model, el }, stylesheet) {
  const place = html("div", { className: "fl-stage" });
  keepPlainKeys(place);
  el.append(place);
  const view = makeViewName();
  let about = null;
  let stage = null;
  let transport = null;

  /** A stage for the data set that the kernel names; its samples are requested if this window does not have them. */
  function open() {
    const samples = samplesByDigest.get(about.digest);
    if (!samples) {
      model.send({ kind: "samples", digest: about.digest, view });
      return;
    }
    const old = stage?.getState() ?? FIRST_STATE;
    const isSame = transport?.data.digest === about.digest;
    const { image, client, classIndex } = isSame ? old : FIRST_STATE;
    const method = about.methods.some(({ name }) => name === old.method) ? old.method : null;
    stage?.destroy();
    transport = createKernelTransport(model, makeStageData(about, samples), view);
    stage = createStage(place, transport, { stylesheet, initial: { ...FIRST_STATE, image, client, classIndex, method, ...about.setting } });
    model.send({ kind: "opened" });
  }

  function readSamples(content, [trainLabels, trainImages, testLabels, testImages]) {
    const train = readPart(content.train, [trainLabels, trainImages]);
    const test = readPart(content.test, [testLabels, testImages]);
    keepSamples(content.digest, { train, test });
  }

  /** Begin with the widget's own state, as a kernel that is busy with other cells does not answer. Without one, ask. */
  function begin() {
    const opening = model.get("opening");
    if (stage !== null) return;
    if (!opening?.data) {
      model.send({ kind: "open", view });
      return;
    }
    about = opening.data.content.about;
    if (!samplesByDigest.has(about.digest)) readSamples(opening.samples.content, opening.samples.buffers);
    open();
    const { content, buffers } = opening.federation;
    transport.receive(content, buffers);
    for (const kind of ["partitions", "stored"]) {
      if (opening[kind]) transport.receive(opening[kind].content, opening[kind].buffers);
    }
  }

  function receive(content, buffers) {
    const isForOtherView = Boolean(content.view) && content.view !== view;
    if (isForOtherView && stage !== null) return;
    if (content.kind === "data") {
      about = content.about;
      open();
    } else if (content.kind === "samples") {
      readSamples(content, buffers);
      if (about?.digest === content.digest) open();
    } else if (content.kind === "setting") {
      stage?.update(content.setting);
    } else if (content.kind === "selection") {
      stage?.select({ client: content.client, classIndex: content.class_index });
    } else {
      transport?.receive(content, buffers);
    }
  }

  /** Show an error that a message causes, so that it is not lost in the notebook. */
  function receiveSafely(content, buffers) {
    try {
      receive(content, buffers);
    } catch (error) {
      console.error(error);
      transport?.receive({ kind: "error", text: `The stage could not show what the kernel sent: ${error.message}` }, []);
    }
  }

  model.on("msg:custom", receiveSafely);
  // Colours and sizes can be measured once the element is on the page.
  const arrival = new ResizeObserver(() => {
    arrival.disconnect();
    begin();
  });
  if (place.isConnected || !model.get("opening")?.data) begin();
  else arrival.observe(place);
  return () => {
    arrival.disconnect();
    model.off("msg:custom", receiveSafely);
    stage?.destroy();
    place.remove();
    stage = null; // the notebook may hold on to this function
    transport = null;
  };
}
