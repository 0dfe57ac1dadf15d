// An isosurface that can be turned, in WebGL2 alone.

import { placeOf } from "./canvas.js";
import { colour } from "./palette.js";
import { FRAGMENT, VERTEX } from "./surface_shader.js";

const START = [[0.83, 0.28, -0.48], [0, 0.86, 0.5], [0.55, -0.42, 0.72]];

/** Draws a volume on a canvas; `Surface.on(canvas)` is null if the browser has no WebGL2. */
export class Surface {
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    return gl ? new Surface(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl, volume: null, level: 128, cut: -2, zoom: 1, firstZoom: 1, isAsked: false });
    this.axes = orthonormal(START);
    this.prepare();
    new ResizeObserver(() => this.redraw()).observe(canvas);
    canvas.addEventListener("theme", () => this.redraw());
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      if (this.volume) this.show(this.volume);
    });
    this.listen();
  }

  prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(`The surface cannot be drawn here: ${gl.getProgramInfoLog(program)}`);
    }
    gl.useProgram(program);
    this.uniform = (name) => gl.getUniformLocation(program, name);
    gl.bindTexture(gl.TEXTURE_3D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    const set = (name, value) => gl.texParameteri(gl.TEXTURE_3D, name, value);
    for (const axis of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R]) set(axis, gl.CLAMP_TO_EDGE);
    for (const which of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) set(which, gl.LINEAR);
  }

  /** Show another volume from the same direction. */
  show(volume) {
    const { gl } = this;
    this.volume = volume;
    gl.texImage3D(gl.TEXTURE_3D, 0, gl.R8, volume.n, volume.n, volume.n, 0, gl.RED, gl.UNSIGNED_BYTE, volume.bytes);
    this.redraw();
  }

  /** level : byte.  cut : share of the cube that is cut away on the side of the viewer, 0 to 1. */
  set(level, cut) {
    this.level = level;
    this.cut = cut > 0 ? -1.75 + 3.5 * cut : -2;
    this.redraw();
  }

  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  draw() {
    const { gl, canvas, volume } = this;
    if (!volume || !canvas.clientWidth || gl.isContextLost()) return;
    // More than 1.5 canvas pixels per CSS pixel cost much, and show little more on a shaded surface.
    const scale = Math.min(window.devicePixelRatio || 1, 1.5);
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.uniformMatrix3fv(this.uniform("eye"), false, this.axes.flat());
    gl.uniform2f(this.uniform("size"), canvas.width, canvas.height);
    gl.uniform1f(this.uniform("zoom"), this.zoom);
    gl.uniform1f(this.uniform("level"), (this.level - 0.5) / 255);
    gl.uniform1f(this.uniform("cut"), this.cut);
    gl.uniform1f(this.uniform("stride"), 1.4 / volume.n);
    gl.uniform3fv(this.uniform("tint"), parts(colour("surface")));
    gl.uniform3fv(this.uniform("face"), parts(colour("surface-inside")));
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    this.drawn?.();
  }

  /** CSS pixels of a length in units of half the cube's edge. */
  pixels(length) {
    return (length * this.zoom * Math.min(this.canvas.clientWidth, this.canvas.clientHeight)) / 2.5;
  }

  /** Turn by angles (radians) to the right and downwards, as seen by the viewer. */
  turn(right, down) {
    const [x, y, z] = this.axes;
    const [c, s, d, u] = [Math.cos(right), Math.sin(right), Math.cos(down), Math.sin(down)];
    const across = mix(x, c, z, s);
    const towards = mix(x, -s, z, c);
    this.axes = orthonormal([across, mix(y, d, towards, -u), mix(y, u, towards, d)]);
    this.redraw();
  }

  /** Choose the zoom so that a body of this radius (in half edges of the cube) fills most of the canvas. */
  fit(reach) {
    this.firstZoom = this.zoom = Math.min(5, Math.max(0.8, 1 / Math.max(reach, 0.01)));
    this.redraw();
  }

  magnify(by) {
    this.zoom = Math.min(8, Math.max(0.5, this.zoom * by));
    this.redraw();
  }

  reset() {
    this.axes = orthonormal(START);
    this.zoom = this.firstZoom;
    this.redraw();
  }

  listen() {
    const { canvas } = this;
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = placeOf(event, canvas);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      const now = placeOf(event, canvas);
      this.turn((now[0] - held[0]) / 140, (now[1] - held[1]) / 140);
      held = now;
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (held = null));
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("wheel", (event) => {
      // The wheel scrolls the page until the user has clicked on the surface.
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      this.magnify(Math.exp(-event.deltaY / 500));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-0.12, 0], ArrowRight: [0.12, 0], ArrowUp: [0, -0.12], ArrowDown: [0, 0.12] };
      if (turns[event.key]) this.turn(...turns[event.key]);
      else if (event.key === "+" || event.key === "=") this.magnify(1.1);
      else if (event.key === "-") this.magnify(1 / 1.1);
      else if (event.key === "0") this.reset();
      else return;
      event.preventDefault();
    });
  }

  /** Free the WebGL context, as a browser allows only a few of them. */
  close() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

const mix = (a, p, b, q) => a.map((value, i) => p * value + q * b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const unit = (a) => a.map((value) => value / Math.sqrt(dot(a, a)));
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

function orthonormal([x, y, z]) {
  const towards = unit(z);
  const right = unit(cross(y, towards));
  return [right, cross(towards, right), towards];
}

function parts(words) {
  const hex = words.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
}
