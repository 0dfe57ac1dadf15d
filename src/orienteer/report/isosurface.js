// An isosurface that can be turned: one ray per pixel through a 3D texture, in plain WebGL2.
// The page holds the maps as JSON: name, shape, voxel_A, low, high, level, fill and one byte per voxel in base64,
// x running fastest.  Without WebGL2 the page shows only its pictures.
"use strict";
(() => {
  const VERTEX = `#version 300 es
    void main() {  // one triangle that covers everything
      vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
      gl_Position = vec4(corner, 0.0, 1.0);
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    precision highp sampler3D;
    uniform sampler3D density;
    uniform vec2 canvas;      // pixels
    uniform mat3 turn;        // from the eye's axes to those of the particle
    uniform vec3 half_box;    // in units of the longest half edge
    uniform vec3 voxel;       // of the texture
    uniform float zoom, level, step_length;
    uniform vec3 colour;
    out vec4 pixel;

    float value(vec3 place) { return texture(density, place / half_box * 0.5 + 0.5).r; }

    vec3 slope(vec3 place) {
      vec3 at = place / half_box * 0.5 + 0.5, d = voxel;
      return vec3(
        texture(density, at + vec3(d.x, 0, 0)).r - texture(density, at - vec3(d.x, 0, 0)).r,
        texture(density, at + vec3(0, d.y, 0)).r - texture(density, at - vec3(0, d.y, 0)).r,
        texture(density, at + vec3(0, 0, d.z)).r - texture(density, at - vec3(0, 0, d.z)).r
      ) / (d * half_box);
    }

    void main() {
      vec2 seen = (2.0 * gl_FragCoord.xy - canvas) / min(canvas.x, canvas.y) * 1.1 / zoom;
      vec3 eye = turn * vec3(seen, 3.0), along = turn * vec3(0, 0, -1);
      vec3 safe = mix(along, vec3(1e-6), lessThan(abs(along), vec3(1e-6)));
      vec3 one = (-half_box - eye) / safe, two = (half_box - eye) / safe;
      vec3 near = min(one, two), far = max(one, two);
      float begin = max(max(near.x, near.y), near.z), end = min(min(far.x, far.y), far.z);
      pixel = vec4(0);
      if (begin >= end) return;
      float before = begin;
      for (float at = begin; at < end; at += step_length) {
        if (value(eye + at * along) < level) { before = at; continue; }
        float low = before, high = at;
        for (int i = 0; i < 7; i++) {
          float middle = 0.5 * (low + high);
          if (value(eye + middle * along) < level) low = middle; else high = middle;
        }
        vec3 normal = -transpose(turn) * slope(eye + high * along);
        normal /= max(length(normal), 1e-9);
        if (high <= begin + 1e-4) normal = vec3(0, 0, 1);  // cut by the box
        vec3 light = normalize(vec3(-0.45, 0.55, 0.70));
        float diffuse = max(dot(normal, light), 0.0);
        float brightness = (0.30 + 0.62 * diffuse + 0.12 * max(normal.z, 0.0)) * (1.16 - 0.13 * (high - 2.0));
        pixel = vec4(min(colour * brightness + 0.18 * pow(diffuse, 24.0), 1.0), 1.0);
        return;
      }
    }`;
  const COLOURS = [[0.42, 0.60, 0.82], [0.88, 0.55, 0.30], [0.30, 0.66, 0.58]];

  function program(gl) {
    const made = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    return made;
  }

  function texture(gl, map) {
    const text = atob(map.voxels), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const made = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_3D, made);
    for (const axis of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R])
      gl.texParameteri(gl.TEXTURE_3D, axis, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage3D(gl.TEXTURE_3D, 0, gl.R8, ...map.shape, 0, gl.RED, gl.UNSIGNED_BYTE, bytes);
    return made;
  }

  // Rotations as 3 x 3 matrices, row by row.
  const product = (a, b) => a.map((_, i) => [0, 1, 2].reduce((sum, k) => sum + a[3 * Math.floor(i / 3) + k] * b[3 * k + i % 3], 0));
  const aboutX = (t) => [1, 0, 0, 0, Math.cos(t), -Math.sin(t), 0, Math.sin(t), Math.cos(t)];
  const aboutY = (t) => [Math.cos(t), 0, Math.sin(t), 0, 1, 0, -Math.sin(t), 0, Math.cos(t)];
  const FIRST = product(aboutX(0.45), aboutY(0.6));

  function roundLength(length) {  // the largest of 1, 2, 5, 10, ... that is not longer
    const decade = 10 ** Math.floor(Math.log10(length));
    return [5, 2, 1].map((step) => step * decade).find((step) => step <= length);
  }

  function show(viewer, maps) {
    const canvas = viewer.querySelector("canvas");
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, preserveDrawingBuffer: true });
    if (!gl) return false;
    const shaders = program(gl), textures = maps.map((map) => texture(gl, map));
    const place = (name) => gl.getUniformLocation(shaders, name);
    const slider = viewer.querySelector("input[type=range]"), said = viewer.querySelector("output");
    const bar = viewer.querySelector(".scale-bar");
    let chosen = 0, turned = FIRST, zoom = 1 / maps[0].fill, asked = false;
    const levels = maps.map((map) => map.level);

    function draw() {
      asked = false;
      const map = maps[chosen], ratio = Math.min(window.devicePixelRatio || 1, 2);
      const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
      const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      const edges = map.shape.map((n, i) => n * map.voxel_A[i]), longest = Math.max(...edges);
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.useProgram(shaders);
      gl.bindTexture(gl.TEXTURE_3D, textures[chosen]);
      gl.uniform2f(place("canvas"), width, height);
      // WebGL reads the rows as columns, which transposes the rotation: now it maps the eye's axes to the particle's.
      gl.uniformMatrix3fv(place("turn"), false, turned);
      gl.uniform3f(place("half_box"), ...edges.map((edge) => edge / longest));
      gl.uniform3f(place("voxel"), ...map.shape.map((n) => 1 / n));
      gl.uniform1f(place("zoom"), zoom);
      gl.uniform1f(place("level"), Math.max((levels[chosen] - map.low) / (map.high - map.low), 1 / 512));
      gl.uniform1f(place("step_length"), 1.2 / Math.max(...map.shape));
      gl.uniform3f(place("colour"), ...COLOURS[chosen % COLOURS.length]);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
      const pixel_A = 1.1 * longest / zoom / Math.min(canvas.clientWidth, canvas.clientHeight);
      const length = roundLength(0.25 * canvas.clientWidth * pixel_A);
      bar.style.width = `${length / pixel_A}px`;
      bar.textContent = `${length >= 1 ? length : length.toPrecision(1)} Å`;
      said.textContent = `${levels[chosen].toPrecision(3)} ${map.unit}`;
    }
    function redraw() {
      if (!asked) { asked = true; requestAnimationFrame(draw); }
    }
    function turnBy(right, up) {
      turned = product(product(aboutX(up), aboutY(right)), turned);
      redraw();
    }
    function zoomBy(factor) {
      zoom = Math.min(10, Math.max(0.4, zoom * factor));
      redraw();
    }
    function setSlider() {
      const map = maps[chosen];
      slider.value = String(Math.round(1000 * (levels[chosen] - Math.max(0, map.low)) / (map.high - Math.max(0, map.low))));
    }

    const touches = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      touches.set(event.pointerId, event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = touches.get(event.pointerId);
      if (!before) return;
      if (touches.size === 1) {
        turnBy((event.clientX - before.clientX) * 0.01, (event.clientY - before.clientY) * 0.01);
      } else {  // two fingers: the change of their distance zooms
        const other = [...touches.values()].find((touch) => touch.pointerId !== event.pointerId);
        const apart = (touch) => Math.hypot(touch.clientX - other.clientX, touch.clientY - other.clientY) + 1;
        zoomBy(apart(event) / apart(before));
      }
      touches.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"])
      canvas.addEventListener(name, (event) => touches.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas) return;  // before the picture has focus, the wheel scrolls the page
      event.preventDefault();
      zoomBy(Math.exp(-0.0012 * event.deltaY));
    }, { passive: false });
    const keys = {
      ArrowLeft: () => turnBy(-0.1, 0), ArrowRight: () => turnBy(0.1, 0),
      ArrowUp: () => turnBy(0, -0.1), ArrowDown: () => turnBy(0, 0.1),
      "+": () => zoomBy(1.15), "=": () => zoomBy(1.15), "-": () => zoomBy(1 / 1.15),
      Home: () => { turned = FIRST; zoom = 1 / maps[0].fill; redraw(); },
    };
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    slider.addEventListener("input", () => {
      const map = maps[chosen], low = Math.max(0, map.low);
      levels[chosen] = low + Number(slider.value) / 1000 * (map.high - low);
      redraw();
    });
    for (const choice of viewer.querySelectorAll("input[type=radio]"))
      choice.addEventListener("change", () => { chosen = Number(choice.value); setSlider(); redraw(); });
    viewer.querySelector("button").addEventListener("click", keys.Home);
    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); viewer.hidden = true; });
    viewer.hidden = false;
    setSlider();
    new ResizeObserver(redraw).observe(canvas);
    draw();
    return true;
  }

  const viewer = document.getElementById("viewer"), stored = document.getElementById("maps");
  if (!viewer || !stored) return;
  const sorry = document.getElementById("no-webgl");
  try {
    if (!show(viewer, JSON.parse(stored.textContent))) sorry.hidden = false;
  } catch (error) {
    console.error(error);
    viewer.hidden = true;
    sorry.hidden = false;
  }
})();
