"use strict";
// The cluster as stages and ranks.

// Of actors/rank_phases.hpp: the word for people, and how it stands.
const phases = {
  empty: ["has no shard", "busy"],
  loading: ["loads", "busy"],
  loaded: ["between epochs", "busy"],
  joining: ["meets its neighbours", "busy"],
  ready: ["ready", "good"],
  awaiting_input: ["awaits rows", "good"],
  in_group: ["computes", "good"],
  leaving: ["publishes", "good"],
  fenced: ["gave the epoch up", "busy"],
  failed: ["failed", "bad"],
  stopped: ["stopped", "bad"],
};

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (count >= 1000 && at + 1 < units.length) {
    count /= 1000;
    ++at;
  }
  return `${at === 0 || count >= 100 ? count.toFixed(0) : count.toFixed(1)} ${units[at]}`;
}

function make(name, kind = "", text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.textContent = text;
  return made;
}

function bar(kinds) {
  const made = make("div", "bar");
  for (const kind of kinds) made.append(make("i", kind));
  return made;
}

function fill(element, shares) {
  shares.forEach((share, at) => {
    element.children[at].style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  });
}

class RankCard {
  constructor(rank) {
    this.root = make("div", "rank");
    this.root.dataset.rank = rank;
    const top = make("div", "top");
    this.title = make("b");
    this.node = make("span", "quiet");
    this.phase = make("span", "phase");
    top.append(this.title, this.node, this.phase);
    this.memory = bar(["weights", "kept"]);
    this.memoryText = [make("span"), make("span")];
    this.time = bar(["compute", "collective", "send"]);
    this.timeText = [make("span"), make("span")];
    const line = (parts) => {
      const made = make("div", "line");
      made.append(...parts);
      return made;
    };
    this.root.append(top, line(this.memoryText), this.memory, line(this.timeText), this.time);
  }

  show(rank, node, most, before, passed_ms) {
    const here = !node || !["lost", "missing"].includes(node.state);
    const [word, tone] = phases[rank.phase] || [rank.phase, "busy"];
    this.root.dataset.here = here ? "yes" : "no";
    this.root.dataset.phase = here ? rank.phase : node.state;
    this.root.dataset.tone = here ? tone : "bad";
    this.root.title = here ? rank.links : node.reason;
    this.title.textContent = `Rank ${rank.rank}`;
    this.node.textContent = `node ${rank.node}`;
    this.phase.textContent = here ? word : node.state;
    this.showMemory(rank, most);
    this.showTime(rank, before, passed_ms);
  }

  showMemory(rank, most) {
    const loads = rank.load_total_bytes > 0 && rank.load_done_bytes < rank.load_total_bytes;
    if (loads) {
      const share = rank.load_done_bytes / rank.load_total_bytes;
      this.memoryText[0].textContent = "loads";
      this.memoryText[1].textContent = `${(share * 100).toFixed(0)} %`;
      return fill(this.memory, [share, 0]);
    }
    this.memoryText[0].textContent = "memory";
    this.memoryText[1].textContent =
      `${bytes(rank.weight_bytes)} weights, ${bytes(rank.state_bytes)} state`;
    fill(this.memory, [rank.weight_bytes / most, rank.state_bytes / most]);
  }

  // Shares of the time since the last look. A step is told when it has ended.
  showTime(rank, before, passed_ms) {
    const grown = (name) => (before ? Math.max(0, rank[name] - before[name]) : 0);
    const share = (name) => grown(name) / (passed_ms * 1e6);
    const shares = ["compute_ns", "collective_ns", "send_ns"].map(share);
    fill(this.time, shares);
    const rows = grown("rows");
    const busy = Math.min(1, shares.reduce((sum, one) => sum + one, 0));
    this.timeText[0].textContent = `step ${rank.step}`;
    this.timeText[1].textContent =
      rows > 0 ? `${((rows * 1000) / passed_ms).toFixed(0)} rows/s, ${(busy * 100).toFixed(0)} % busy`
               : "idle";
  }
}

class ClusterView {
  constructor(root) {
    this.root = root;
    this.cards = new Map();
    this.shape = "";
  }

  // Beats come a few times a second: shares of time are taken over two seconds.
  show(now, before) {
    this.lay(now.ranks);
    const nodes = new Map(now.nodes.map((node) => [node.name, node]));
    const old = new Map((before?.ranks || []).map((rank) => [rank.rank, rank]));
    const passed_ms = before ? now.at_ms - before.at_ms : 1;
    const most = Math.max(1, ...now.ranks.map((rank) => rank.weight_bytes + rank.state_bytes));
    for (const rank of now.ranks)
      this.cards.get(rank.rank)
        .show(rank, nodes.get(rank.node), most, old.get(rank.rank), passed_ms);
  }

  // Builds the columns anew only where the plan is another one.
  lay(ranks) {
    const shape = JSON.stringify(ranks.map((rank) => [rank.rank, rank.stage, rank.layers]));
    if (shape === this.shape) return;
    this.shape = shape;
    this.cards.clear();
    const columns = new Map();
    for (const rank of ranks) {
      if (!columns.has(rank.stage)) columns.set(rank.stage, this.column(rank));
      const card = new RankCard(rank.rank);
      this.cards.set(rank.rank, card);
      columns.get(rank.stage).append(card.root);
    }
    this.root.replaceChildren(...columns.values());
  }

  column(rank) {
    const made = make("div", "stage");
    const title = make("h3", "", `Stage ${rank.stage}`);
    const [first, end] = rank.layers;
    title.append(make("span", "", end > first ? `layers ${first}–${end - 1}` : "no layers"));
    made.append(title);
    return made;
  }
}
