// The isosurface on the GPU: one ray per pixel walks through a 3D texture until the value passes the level.

/** One triangle that covers the canvas. */
export const VERTEX = `#version 300 es
void main() {
  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}`;

/**
 * The cube reaches from -1 to 1 along x, y and z; rays are parallel, so that lengths can be measured on the screen.
 * Everything nearer to the eye than `cut` is cut away; values inside, where the cut opens them, are drawn in `face`.
 */
export const FRAGMENT = `#version 300 es
precision highp float;
precision highp sampler3D;
uniform sampler3D volume;   // z runs fastest in memory, and is the first coordinate of the texture
uniform mat3 eye;           // columns: right, up and towards the eye, in the axes of the volume
uniform vec2 size;          // of the canvas, pixels
uniform float zoom, level, cut, stride;
uniform vec3 tint, face;
out vec4 shade;

float at(vec3 p) { return texture(volume, p.zyx * 0.5 + 0.5).r; }

vec3 uphill(vec3 p) {
  vec2 h = vec2(stride, 0.0);
  return vec3(at(p + h.xyy) - at(p - h.xyy), at(p + h.yxy) - at(p - h.yxy), at(p + h.yyx) - at(p - h.yyx));
}

void main() {
  vec2 seen = (gl_FragCoord.xy - 0.5 * size) * 2.5 / (zoom * min(size.x, size.y));
  vec3 start = eye[0] * seen.x + eye[1] * seen.y;
  vec3 into = -eye[2];
  // Where the ray enters and leaves the cube, as distances from the plane through its centre.
  vec3 slope = 1.0 / (into + vec3(1e-7));
  vec3 first = min((-1.0 - start) * slope, (1.0 - start) * slope);
  vec3 last = max((-1.0 - start) * slope, (1.0 - start) * slope);
  float enter = max(max(max(first.x, first.y), first.z), cut);
  float leave = min(min(last.x, last.y), last.z);
  shade = vec4(0.0);
  if (enter >= leave) return;

  float t = enter, before = at(start + enter * into) - level;
  if (before >= 0.0) {  // the ray begins inside: the face of the cut, or of the cube
    float above = clamp(before / max(1.0 - level, 0.01), 0.0, 1.0);
    shade = vec4(above < 0.5 ? mix(tint * 0.3, tint, 2.0 * above) : mix(tint, face, 2.0 * above - 1.0), 1.0);
    return;
  }
  while (t < leave) {
    t += stride;
    float now = at(start + t * into) - level;
    if (now >= 0.0) {
      float outside = t - stride, within = t;
      for (int i = 0; i < 6; i++) {
        float middle = 0.5 * (outside + within);
        if (at(start + middle * into) < level) outside = middle; else within = middle;
      }
      vec3 normal = normalize(-uphill(start + within * into) + 1e-6 * eye[2]) * eye;  // in the axes of the eye
      float key = max(dot(normal, normalize(vec3(-0.5, 0.6, 0.65))), 0.0);
      float fillIn = max(dot(normal, normalize(vec3(0.7, -0.2, 0.4))), 0.0);
      float depth = 1.0 - 0.22 * clamp(within + 0.6, 0.0, 1.6);
      vec3 lit = tint * (0.30 + 0.82 * key + 0.22 * fillIn) * depth + vec3(0.25) * pow(key, 30.0);
      shade = vec4(min(lit, 1.0), 1.0);
      return;
    }
  }
}`;
