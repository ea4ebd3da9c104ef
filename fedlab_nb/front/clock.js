// One clock for what moves on the stage; another one can be put in its place, so that frames are the same again.
export const REAL_CLOCK = {
  now: () => performance.now(),
  request: (step) => requestAnimationFrame(step),
  cancel: (frame) => cancelAnimationFrame(frame),
};
