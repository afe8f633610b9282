"use strict";
// Follows the cluster, for as long as the page is open.

const retry_ms = 1000;
const cluster = new ClusterView(document.getElementById("stages"));
const rates = new RatesView();
new Playground();

function span(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function showState(state, word) {
  const pill = document.getElementById("state");
  pill.dataset.state = state;
  pill.textContent = word;
}

function showReason(text) {
  const notice = document.getElementById("reason");
  notice.hidden = !text;
  notice.textContent = text;
}

function showEvents(events) {
  const list = document.getElementById("events");
  const shape = JSON.stringify(events);
  if (list.dataset.shape === shape) return;
  list.dataset.shape = shape;
  const items = events.toReversed().map((event) => {
    const item = make("li");
    const at = make("time", "", new Date(event.at_ms).toLocaleTimeString());
    item.append(at, event.what,
                make("span", event.done ? "done" : "open", event.done || "being dealt with"));
    return item;
  });
  list.replaceChildren(...(items.length ? items : [make("li", "quiet", "Nothing so far.")]));
}

function show(now) {
  document.getElementById("what").textContent = `${now.cluster} · ${now.model}`;
  document.getElementById("epoch").textContent = now.epoch;
  document.getElementById("recoveries").textContent = now.recoveries;
  document.getElementById("uptime").textContent = span(now.uptime_ms);
  showState(now.ready ? "serving" : "waiting", now.ready ? "serving" : "not serving");
  showReason(now.ready ? "" : `${now.reason}, for ${span(now.since_ms)}`);
  cluster.show(now, rates.since(now, 2000));
  rates.add(now);
  showEvents(now.events);
}

async function showPlan() {
  const picture = await (await server.ask("/plan.svg")).blob();
  document.getElementById("picture").src = URL.createObjectURL(picture);
  document.getElementById("plan").hidden = false;
}

function askForKey() {
  document.getElementById("key-form").hidden = false;
  document.getElementById("key").focus();
  showState("unknown", "key needed");
}

// One connection after another: a server that ends and comes back is found again.
async function follow() {
  let planned = false;
  for (;;) {
    try {
      for await (const data of server.events("/events")) {
        if (!planned) {
          planned = true;
          showPlan().catch(() => {}); // a head without one shows none
        }
        if (data !== null) show(JSON.parse(data));
      }
    } catch (mistake) {
      if (mistake instanceof KeyNeeded) return askForKey();
    }
    showState("lost", "no connection");
    showReason("The server does not answer; trying again.");
    await new Promise((resolve) => setTimeout(resolve, retry_ms));
  }
}

document.getElementById("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.useKey(document.getElementById("key").value.trim());
  document.getElementById("key-form").hidden = true;
  follow();
});

follow();
