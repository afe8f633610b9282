"use strict";
// One completion at a time, streamed, and stopped at any moment.

class Playground {
  constructor() {
    const find = (id) => document.getElementById(id);
    this.prompt = find("prompt");
    this.most = find("most");
    this.temperature = find("temperature");
    this.run = find("run");
    this.stop = find("stop");
    this.answer = find("answer");
    this.told = find("told");
    this.abort = null;
    find("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.write();
    });
    this.stop.addEventListener("click", () => this.abort?.abort());
  }

  tell(text, wrong = false) {
    this.told.textContent = text;
    this.told.classList.toggle("wrong", wrong);
  }

  async write() {
    if (this.abort) return;
    this.abort = new AbortController();
    this.run.disabled = true;
    this.stop.disabled = false;
    this.answer.replaceChildren(make("span", "given", this.prompt.value), "");
    this.tell("waiting for the first token");
    try {
      await this.read(this.abort.signal);
    } catch (mistake) {
      if (mistake.name === "AbortError") this.tell("stopped; its work ends on every rank");
      else if (mistake instanceof KeyNeeded) askForKey();
      else this.tell(mistake.message, true);
    }
    this.abort = null;
    this.run.disabled = false;
    this.stop.disabled = true;
  }

  async read(signal) {
    const began = performance.now();
    let first = 0;
    let pieces = 0;
    const body = {
      prompt: this.prompt.value,
      max_tokens: Number(this.most.value),
      temperature: Number(this.temperature.value),
      stream: true,
      stream_options: { include_usage: true },
    };
    const stream = server.events("/v1/completions", {
      method: "POST", body: JSON.stringify(body), signal,
      headers: { "Content-Type": "application/json" },
    });
    for await (const data of stream) {
      if (data === null) {
        this.tell("paused: the cluster replaces a part, or the request waits");
        continue;
      }
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      const text = chunk.choices[0]?.text;
      if (text) {
        first ||= performance.now();
        ++pieces;
        this.add(text);
      }
      const last = chunk.usage ? chunk.usage.completion_tokens : pieces;
      const seconds = (performance.now() - (first || began)) / 1000;
      this.tell(`${last} tokens, first after ${((first || performance.now()) - began).toFixed(0)} ms`
                + (last > 1 && seconds > 0 ? `, ${((last - 1) / seconds).toFixed(1)} a second` : ""));
    }
  }

  add(text) {
    const follows = this.answer.scrollHeight - this.answer.scrollTop - this.answer.clientHeight < 40;
    this.answer.lastChild.appendData(text);
    if (follows) this.answer.scrollTop = this.answer.scrollHeight;
  }
}
