// Listens for changed runs; if the connection is lost, the page says so and retries after growing pauses.

const FIRST_WAIT_s = 0.5;
const LONGEST_WAIT_s = 15;
// The server sends a message about once a second: a connection that is silent for long is dead, whatever TCP says.
const LONGEST_SILENCE_s = 20;

/**
 * Listen to the server for as long as the page is open.
 *
 * changed(ids) : called with the runs that have changed; with null after a gap, in which any may have changed.
 * connected(state) : called with "open", or with "waiting" and the seconds until the next try.
 */
export function watch(changed, connected) {
  let wait = FIRST_WAIT_s;
  let timer = null;
  let silence = null;
  let socket = null;
  let hasGap = false;

  function open() {
    clearTimeout(timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/api/watch`);
    socket.onopen = () => {
      wait = FIRST_WAIT_s;
      connected({ state: "open" });
      if (hasGap) changed(null);
      hasGap = false;
      listenOn();
    };
    socket.onmessage = (event) => {
      listenOn();
      const ids = runsIn(event.data);
      if (ids.length) changed(ids);
    };
    socket.onclose = retry;
  }

  function listenOn() {
    clearTimeout(silence);
    silence = setTimeout(() => socket.close(), 1000 * LONGEST_SILENCE_s);
  }

  function retry() {
    clearTimeout(silence);
    clearTimeout(timer);
    hasGap = true;
    connected({ state: "waiting", seconds: wait });
    // A random pause keeps pages that have lost the same server from all reconnecting at once.
    timer = setTimeout(open, 1000 * wait * (0.75 + 0.5 * Math.random()));
    wait = Math.min(2 * wait, LONGEST_WAIT_s);
  }

  // Reconnect at once when the page becomes visible or the network is back.
  function now() {
    if (document.hidden || socket.readyState === WebSocket.OPEN || socket.readyState === WebSocket.CONNECTING) return;
    wait = FIRST_WAIT_s;
    open();
  }
  document.addEventListener("visibilitychange", now);
  window.addEventListener("online", now);
  open();
}

function runsIn(text) {
  try {
    const told = JSON.parse(text);
    return Array.isArray(told.runs) ? told.runs : [];
  } catch {
    return [];
  }
}
