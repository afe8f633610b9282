"use strict";
// The way to the server: requests with a key where one is needed, and streams of events.

const server = {
  key: sessionStorage.getItem("troupe-key") || "",

  useKey(key) {
    this.key = key;
    sessionStorage.setItem("troupe-key", key);
  },

  async ask(path, options = {}) {
    const headers = { ...options.headers };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    const answer = await fetch(path, { ...options, headers, cache: "no-store" });
    if (answer.status === 401) throw new KeyNeeded();
    if (!answer.ok) {
      const told = await answer.json().catch(() => null);
      throw new Error(told?.error?.message || `${path} answers ${answer.status}`);
    }
    return answer;
  },

  // The data of each event of a stream, and null for a comment, which only says that it lives.
  // EventSource sends no headers, so keys would have to stand in addresses: this reader does.
  async *events(path, options = {}) {
    const answer = await this.ask(path, options);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let pending = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      pending += value;
      const parts = pending.split("\n\n");
      pending = parts.pop();
      for (const part of parts)
        yield part.startsWith("data: ") ? part.slice("data: ".length) : null;
    }
  },
};

class KeyNeeded extends Error {}
