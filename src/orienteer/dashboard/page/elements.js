// Elements of the page.  Text from files and people only ever becomes text, never markup: nothing here parses HTML.

/**
 * A new element.
 *
 * properties : "class", "data-…", "aria-…" and "role" become attributes, "on…" listeners, all others properties
 *     (so that `disabled: false` means what it says).  null leaves one out.
 * children : elements, or anything else as text; null and false are left out.
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class" || key === "role" || key === "for" || key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...shown(children));
  return made;
}

/** Replace all children of an element by these. */
export function fill(parent, ...children) {
  parent.replaceChildren(...shown(children));
  return parent;
}

function shown(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

/** A titled part of a view: `card.body` is to be filled, `card.aside` is to the right of the title. */
export function card(title, { wide = false, name = "" } = {}) {
  const body = element("div", { class: "body" });
  const aside = element("div", { class: "aside" });
  const heading = element("h2", {}, title);
  const whole = element(
    "section",
    { class: wide ? "card wide" : "card", "aria-label": title, "data-card": name || title.toLowerCase() },
    element("div", { class: "heading" }, heading, aside),
    body,
  );
  return { whole, body, aside, heading };
}

/** A button with a text; `act` may be asynchronous, and the button is disabled until it ends. */
export function button(words, act, properties = {}) {
  const made = element("button", { type: "button", ...properties }, words);
  made.addEventListener("click", async () => {
    made.setAttribute("aria-busy", "true");
    try {
      await act(made);
    } finally {
      made.removeAttribute("aria-busy");
    }
  });
  return made;
}

/** A choice of one of several, as a drop-down: `options` are [value, words] pairs. */
export function choice(label, options, chosen, act) {
  const list = element("select", { "aria-label": label, onchange: () => act(list.value) });
  setOptions(list, options, chosen);
  return list;
}

/** Change the options of a choice and keep what is chosen, if it is still among them. */
export function setOptions(list, options, chosen) {
  const keys = JSON.stringify(options);
  if (list.dataset.options !== keys) {
    list.dataset.options = keys;
    fill(list, options.map(([value, words]) => element("option", { value }, words)));
  }
  list.value = options.some(([value]) => value === chosen) ? chosen : (options[0] ?? [""])[0];
}
