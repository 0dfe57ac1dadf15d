// Requests to the server: for JSON, for arrays of bytes, and to change something.

/** A refused request: `message` is the sentence of the server. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (trouble) {
    if (trouble.name === "AbortError") throw trouble;
    throw new Refusal("The server does not answer. Is orienteer serve still running, and the tunnel open?", 0);
  }
  if (answer.ok) return answer;
  let words = "";
  try {
    const told = await answer.json();
    words = [told.error, told.hint].filter(Boolean).join(" ");
  } catch {
    // A proxy between the page and the server may answer with something else than JSON.
  }
  if (answer.status === 401) words = "This browser has no token. Open the address that orienteer serve has printed.";
  throw new Refusal(words || `The server answers ${answer.status}.`, answer.status);
}

/** A path with parameters; empty ones are left out. */
export function address(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

export async function getJson(path, parameters = {}, signal = undefined) {
  return (await asked(address(path, parameters), { signal })).json();
}

/**
 * An array of bytes and the facts in its headers.
 *
 * Returns { bytes, shape, low, high, voxel, unit, isLog }: `shape` numbers; `unit` that of the voxel; others null if
 * they are not told.
 */
export async function getArray(path, parameters = {}, signal = undefined) {
  const answer = await asked(address(path, parameters), { signal });
  const bytes = await answer.arrayBuffer();
  const told = (name) => {
    const value = answer.headers.get(name);
    return value === null || value === "" ? null : Number(value);
  };
  const shape = (answer.headers.get("X-Shape") ?? "").split(",").map(Number);
  const unit = inSymbols(answer.headers.get("X-Unit") ?? "");
  const isLog = answer.headers.get("X-Scale") === "log";
  return { bytes, shape, low: told("X-Low"), high: told("X-High"), voxel: told("X-Voxel"), unit, isLog };
}

// Headers are ASCII.
const inSymbols = (unit) => unit.replace(/\bA\b/g, "Å").replace(/\^3/g, "³");

/** Change something.  Other sites cannot send this header, so they cannot make changes through this browser. */
export async function post(path, body = {}) {
  const answer = await asked(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Orienteer": "1" },
    body: JSON.stringify(body),
  });
  return answer.json().catch(() => ({}));
}

/**
 * Run `act` now, and once more if asked again meanwhile; never twice at a time.
 *
 * So requests do not pile up when changes come faster than answers.
 */
export function oneAtATime(act) {
  let running = null;
  let again = false;
  return function ask() {
    if (running) {
      again = true;
      return running;
    }
    running = (async () => {
      try {
        do {
          again = false;
          await act();
        } while (again);
      } finally {
        running = null;
      }
    })();
    return running;
  };
}
