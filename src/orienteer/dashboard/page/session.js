// State of the whole page: whether changes are allowed, and how errors are shown.

import { fill } from "./elements.js";

export const session = { isReadOnly: false, hasCampaign: false, tags: [], samples: [] };

/** Store the facts about the server that come with its list of runs. */
export function learn(told) {
  const isReadOnly = told.is_read_only ?? told.read_only;
  if (isReadOnly !== undefined) session.isReadOnly = Boolean(isReadOnly);
  if (told.has_campaign !== undefined) session.hasCampaign = Boolean(told.has_campaign);
  if (Array.isArray(told.tags) && Array.isArray(told.runs)) session.tags = told.tags;
  if (Array.isArray(told.samples)) session.samples = told.samples.map((sample) => sample.name ?? sample);
  document.getElementById("read-only").hidden = !session.isReadOnly;
}

/** Do something, and show an error at the top of the page; returns whether it succeeded. */
export async function attempt(act) {
  try {
    await act();
    tellTrouble("");
    return true;
  } catch (trouble) {
    if (trouble.name !== "AbortError") tellTrouble(trouble.message);
    return false;
  }
}

/** Show what is wrong; an empty text shows nothing. */
export function tellTrouble(words) {
  const place = document.getElementById("trouble");
  fill(place, words);
  place.hidden = !words;
}
