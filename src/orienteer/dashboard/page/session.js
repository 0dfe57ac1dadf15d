// What holds for the whole page: whether anything may be changed here, and how troubles are told.

import { fill } from "./elements.js";

export const session = { isReadOnly: false, hasCampaign: false, tags: [], samples: [] };

/** Take over what the server says about itself beside its list of runs. */
export function learn(told) {
  const isReadOnly = told.is_read_only ?? told.read_only;
  if (isReadOnly !== undefined) session.isReadOnly = Boolean(isReadOnly);
  if (told.has_campaign !== undefined) session.hasCampaign = Boolean(told.has_campaign);
  if (Array.isArray(told.tags) && Array.isArray(told.runs)) session.tags = told.tags;
  if (Array.isArray(told.samples)) session.samples = told.samples.map((sample) => sample.name ?? sample);
  document.getElementById("read-only").hidden = !session.isReadOnly;
}

/** Do something and tell its trouble at the top of the page; returns whether it went well. */
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

/** Say what is wrong; nothing when it is empty. */
export function tellTrouble(words) {
  const place = document.getElementById("trouble");
  fill(place, words);
  place.hidden = !words;
}
