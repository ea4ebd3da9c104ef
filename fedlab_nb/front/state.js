// From an event to the next state. Pure: the stage draws what comes out, and asks the engine for what is missing.
/** alpha, clients, seed, moves: the setting, which says who holds what; client: a pile that is chosen, or null;
    classIndex: a class that is chosen, or null; method: the one that a person has chosen, or null; image: a test image's number, "t" and a training image's, or 64 letters a-q of a drawing;
    isStarted: somebody has made a gesture, so that results may follow the hand. */
export const FIRST_STATE = { alpha: 0.1, clients: 10, seed: 4, moves: [], client: null, classIndex: null, method: null, image: "1", isStarted: false };

/** Seeds go from 0 to this, as in the panels (`MOST_SEED` in panels/controls.py). */
export const MOST_SEED = 1_000_000;

/** With more clients than this, training waits for Run. */
export const MOST_LIVE_CLIENTS = 20;

export function reduce(state, event) {
  switch (event.kind) {
    case "alpha":
      return { ...state, alpha: event.value };
    case "clients": // other clients: what was moved by hand belonged to those before
      return fitClients({ ...state, clients: event.value, moves: [] });
    case "seed":
      return { ...state, seed: event.value, moves: [] };
    case "move": {
      const { from, to, label } = event;
      const isPossible = from !== to && Math.min(from, to) >= 0 && Math.max(from, to) < state.clients;
      return isPossible ? { ...state, moves: [...state.moves, { from, label, to }], client: null } : state;
    }
    case "undo":
      return { ...state, moves: state.moves.slice(0, -1) };
    case "client":
      return { ...state, client: state.client === event.value ? null : event.value };
    case "class":
      return { ...state, classIndex: state.classIndex === event.value ? null : event.value };
    case "method":
      return { ...state, method: event.value };
    case "select": // what was chosen elsewhere
      return fitClients({ ...state, ...event.selection });
    case "close":
      return { ...state, client: null };
    case "image":
      return { ...state, image: event.value };
    case "release":
    case "run":
      return { ...state, isStarted: true };
    case "restore":
      return fitClients({ ...state, ...event.state });
    default:
      throw new Error(`The stage has no event "${event.kind}".`);
  }
}

/** Drop the moves of clients that no longer exist. */
function fitClients(state) {
  const isThere = (k) => k < state.clients;
  const moves = state.moves.filter(({ from, to }) => isThere(from) && (to === null || isThere(to)));
  const client = state.client !== null && isThere(state.client) ? state.client : null;
  return { ...state, moves, client };
}

/** Two states with the same key have the same federation. */
export function makeSettingKey({ alpha, clients, seed, moves }) {
  return JSON.stringify([alpha, clients, seed, moves.map(({ from, label, to }) => [from, label, to])]);
}
