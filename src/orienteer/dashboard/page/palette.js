// Colours: a set for curves that colour-blind people can distinguish, scales for maps, and those of the page.

/** The colour of a name of the style sheet, such as "ink" or "curve-2", in the current theme. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
}

/** The colour of the i-th curve; there are six. */
export const curve = (index) => colour(`curve-${1 + (index % 6)}`);

/** Colours of the kinds of hits, the same everywhere. */
export const KIND_COLOURS = { single: "curve-1", multiple: "curve-2", junk: "curve-5", unsure: "curve-6" };

// From dark blue over green to yellow; lightness rises evenly, so that it works in grey and for colour-blind people.
const STOPS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

function table(stops) {
  const made = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let channel = 0; channel < 3; channel++) {
      made[3 * i + channel] = stops[low][channel] + (place - low) * (stops[low + 1][channel] - stops[low][channel]);
    }
  }
  return made;
}

/** (256 * 3) bytes of red, green and blue: the scale of maps. */
export const MAP = table(STOPS);

/** (256 * 3) bytes from brown (slow) over white to green (fast). */
export const RATE = table([
  [84, 48, 5], [191, 129, 45], [246, 232, 195], [245, 245, 245], [128, 205, 193], [1, 102, 94],
]);

/** (256 * 3) bytes from white to black, for photons on a light page. */
export const GREY = table([[250, 250, 250], [120, 120, 125], [10, 10, 15]]);

const ORDER = ["auto", "light", "dark"];
const SIGNS = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" };

/** Let a button go through the themes; this browser keeps the choice.  Canvases listen for the event "theme". */
export function themeButton(button) {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("theme") ?? "auto";
  } catch {
    // A browser may forbid storage; then the choice lasts as long as the page is open.
  }
  function apply() {
    if (!ORDER.includes(chosen)) chosen = "auto";
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = SIGNS[chosen];
    for (const canvas of document.querySelectorAll("canvas")) canvas.dispatchEvent(new Event("theme"));
  }
  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // As above.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}
