// What the page asks of the server: JSON, arrays of bytes, and requests that change something.

/** An answer that was no: `message` is the sentence of the server. */
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
    // Whatever stands between the page and the server may answer in its own way.
  }
  if (answer.status === 401) words = "This browser has no token. Open the address that orienteer serve has printed.";
  throw new Refusal(words || `The server answers ${answer.status}.`, answer.status);
}

/** A path with parameters; those that are empty are left out. */
export function address(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

export async function getJson(path, parameters = {}, signal = undefined) {
  return (await asked(address(path, parameters), { signal })).json();
}

/**
 * An array of bytes and what its headers tell.
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

/** Change something.  The header keeps other sites from doing it in the name of this browser. */
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
 * Answers that are slower than the changes that ask for them then do not pile up.
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
