// The entry of a panel in a notebook: the same stage as in the page without Python, with a kernel behind it.
import { html } from "./dom.js";
import { createKernelTransport, makeStageData, readBuffer } from "./kernel_transport.js";
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
  let about = null;
  let stage = null;
  let transport = null;

  /** A stage for the data set that the kernel names; its samples are asked for where this window has not got them. */
  function open() {
    const samples = samplesByDigest.get(about.digest);
    if (!samples) {
      model.send({ kind: "samples", digest: about.digest });
      return;
    }
    const old = stage?.getState() ?? FIRST_STATE;
    const isSame = transport?.data.digest === about.digest;
    const { image, client } = isSame ? old : FIRST_STATE;
    stage?.destroy();
    transport = createKernelTransport(model, makeStageData(about, samples));
    stage = createStage(place, transport, { stylesheet, initial: { ...FIRST_STATE, image, client, ...about.setting } });
    model.send({ kind: "opened" });
  }

  function receive(content, buffers) {
    if (content.kind === "data") {
      about = content.about;
      open();
    } else if (content.kind === "samples") {
      const [trainLabels, trainImages, testLabels, testImages] = buffers;
      const train = readPart(content.train, [trainLabels, trainImages]);
      const test = readPart(content.test, [testLabels, testImages]);
      keepSamples(content.digest, { train, test });
      if (about?.digest === content.digest) open();
    } else if (content.kind === "setting") {
      stage?.update(content.setting);
    } else {
      transport?.receive(content, buffers);
    }
  }

  /** What goes wrong while a message is shown is said, and not lost in the notebook. */
  function receiveSafely(content, buffers) {
    try {
      receive(content, buffers);
    } catch (error) {
      console.error(error);
      transport?.receive({ kind: "error", text: `The stage could not show what the kernel sent: ${error.message}` }, []);
    }
  }

  model.on("msg:custom", receiveSafely);
  model.send({ kind: "open" });
  return () => {
    model.off("msg:custom", receiveSafely);
    stage?.destroy();
    place.remove();
    stage = null; // the notebook may hold on to this function
    transport = null;
  };
}
