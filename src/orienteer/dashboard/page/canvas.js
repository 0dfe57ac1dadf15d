// A canvas with the resolution of the screen, which is redrawn only when its size, the theme or its content changes.
// Its units grow with the font size of the page, so that the same numbers fit a projector and a phone.

/** CSS pixels of a unit. */
export const unit = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

/**
 * A canvas of full width.
 *
 * draw(context, width, height) : draws everything, on an empty canvas; all in units.
 * height : units, or a function of the width.
 * label : what it shows, for screen readers.
 * Returns { canvas, redraw }; `redraw()` may be called often; it draws at most once per frame of the screen.
 */
export function sharpCanvas(draw, { height = 220, label = "", focusable = true } = {}) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  if (focusable) canvas.tabIndex = 0;
  let isAsked = false;

  function paint() {
    isAsked = false;
    if (!canvas.clientWidth) return;
    const width = canvas.clientWidth / unit();
    const tall = typeof height === "function" ? height(width) : height;
    const scale = (window.devicePixelRatio || 1) * unit();
    const [columns, rows] = [Math.round(width * scale), Math.round(tall * scale)];
    if (canvas.width !== columns || canvas.height !== rows) {
      canvas.style.height = `${tall * unit()}px`;
      canvas.width = columns;
      canvas.height = rows;
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    draw(context, width, tall);
  }

  function redraw() {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(paint);
  }

  new ResizeObserver(redraw).observe(canvas);
  canvas.addEventListener("theme", redraw);
  return { canvas, redraw };
}

/** The position of a pointer on an element, in units from its upper left corner. */
export function placeOf(event, on) {
  const box = on.getBoundingClientRect();
  return [(event.clientX - box.left) / unit(), (event.clientY - box.top) / unit()];
}

/** The font of canvases; its size in units. */
export const font = (size = 12, weight = "") => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", sans-serif`;
