// Dialogs that ask the user before anything is changed.

import { element } from "./elements.js";

/**
 * Ask before doing something.
 *
 * words : what would happen.  action : the word on the button.
 * Returns whether the user agreed; Escape and the other button mean no.
 */
export function confirm(words, action) {
  return opened((close) => [
    element("p", {}, words),
    buttons(element("button", { type: "button", class: "main", onclick: () => close(true) }, action), close),
  ]).then((answer) => answer === true);
}

/** Ask for a line of text (or several); null if it was cancelled. */
export function ask(words, { action = "Save", many = false, most = 2000, suggestions = [] } = {}) {
  return opened((close) => {
    const id = "suggestions";
    const field = many
      ? element("textarea", { rows: 5, maxLength: most, "aria-label": words })
      : element("input", { type: "text", maxLength: most, "aria-label": words, autocomplete: "off" });
    const known = element("datalist", { id }, suggestions.map((value) => element("option", { value })));
    if (!many) field.setAttribute("list", id);
    const give = () => field.value.trim() && close(field.value.trim());
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || (many && !event.ctrlKey)) return;
      event.preventDefault();
      give();
    });
    return [
      element("p", {}, words), field, known,
      buttons(element("button", { type: "button", class: "main", onclick: give }, action), close),
    ];
  });
}

/** Show something large until it is closed; `made(close)` gives the content. */
export function opened(made) {
  return new Promise((resolve) => {
    let answer = null;
    const dialog = element("dialog", {});
    const close = (value = null) => {
      answer = value;
      dialog.close();
    };
    dialog.append(...made(close));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && close());
    document.body.append(dialog);
    dialog.showModal();
  });
}

function buttons(main, close) {
  const cancel = element("button", { type: "button", onclick: () => close() }, "Cancel");
  return element("div", { class: "actions" }, main, cancel);
}
