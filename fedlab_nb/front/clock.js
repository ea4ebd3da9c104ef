// One clock for everything that moves on the stage. Tests replace it, so that frames can be reproduced.
export const REAL_CLOCK = {
  now: () => performance.now(),
  request: (step) => requestAnimationFrame(step),
  cancel: (frame) => cancelAnimationFrame(frame),
};
