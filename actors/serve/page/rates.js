"use strict";
// Rates and latencies, from counters that only grow, and their charts of the last two minutes.

const shown_ms = 120000;

// The value below which `share` of what was counted between two looks lies; by the buckets' bounds,
// evenly within one. Null where nothing was counted.
function quantile(bounds, now, before, share) {
  const counts = now.map((count, at) => count - (before[at] || 0));
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all <= 0) return null;
  let left = all * share;
  for (let at = 0; at < bounds.length; ++at) {
    const low = at > 0 ? bounds[at - 1] : 0;
    if (left <= counts[at]) return low + ((bounds[at] - low) * left) / counts[at];
    left -= counts[at];
  }
  return bounds[bounds.length - 1];
}

function milliseconds(us) {
  if (us === null) return "–";
  const ms = us / 1000;
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

class LineChart {
  constructor(canvas, lines) {
    const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    this.lines = lines;
    this.style = style;
    this.chart = new Chart(canvas, {
      type: "line",
      data: {
        datasets: lines.map(([label]) => ({
          label, data: [], borderWidth: 1.6, pointRadius: 0, tension: 0.25, spanGaps: false,
        })),
      },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
        normalized: true, events: [],
        scales: {
          x: {
            type: "linear", min: -shown_ms / 1000, max: 0, border: { display: false },
            grid: { display: false },
            ticks: { stepSize: 60, callback: (at) => (at === 0 ? "now" : `${at} s`) },
          },
          y: { beginAtZero: true, suggestedMax: 1, ticks: { maxTicksLimit: 4, precision: 0 } },
        },
        plugins: {
          legend: {
            display: lines.length > 1, align: "end",
            labels: { boxWidth: 8, boxHeight: 8, usePointStyle: true },
          },
        },
      },
    });
    this.paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  paint() {
    const { chart, style } = this;
    this.lines.forEach(([, colour], at) => {
      chart.data.datasets[at].borderColor = style(colour);
      chart.data.datasets[at].backgroundColor = style(colour);
    });
    for (const scale of Object.values(chart.options.scales)) scale.ticks.color = style("--quiet");
    chart.options.scales.y.grid = { color: style("--line"), drawBorder: false };
    chart.options.plugins.legend.labels.color = style("--quiet");
    chart.update();
  }

  show(points, now_ms) {
    points.forEach((line, at) => {
      this.chart.data.datasets[at].data =
        line.map(([at_ms, value]) => ({ x: (at_ms - now_ms) / 1000, y: value }));
    });
    this.chart.update();
  }
}

class RatesView {
  constructor() {
    this.seen = [];
    this.points = [];
    this.rate = new LineChart(document.getElementById("rate-chart"), [["tokens", "--weights"]]);
    this.wait = new LineChart(document.getElementById("wait-chart"),
                           [["median", "--compute"], ["99 %", "--kept"]]);
    this.queue = new LineChart(document.getElementById("queue-chart"),
                            [["running", "--weights"], ["waiting", "--kept"]]);
  }

  // The newest look that is at least so old; the oldest there is otherwise.
  since(now, age_ms) {
    return this.seen.findLast((one) => now.at_ms - one.at_ms >= age_ms) || this.seen[0] || null;
  }

  add(now) {
    const last = this.seen[this.seen.length - 1];
    const anew = last && now.requests.answer_tokens < last.requests.answer_tokens;
    if (anew) this.seen = []; // another process counts from nothing
    this.seen = this.seen.filter((one) => now.at_ms - one.at_ms < 15000);
    this.measure(now, this.since(now, 2000), this.since(now, 10000));
    this.seen.push(now);
  }

  measure(now, near, far) {
    const told = now.requests;
    const bounds = told.latency_bounds_us;
    const over = (one, name, share) =>
      one ? quantile(bounds, told[name], one.requests[name], share) : null;
    const passed = near ? now.at_ms - near.at_ms : 0;
    const rate = passed > 0
      ? ((told.answer_tokens - near.requests.answer_tokens) * 1000) / passed : 0;
    const text = (id, value) => { document.getElementById(id).textContent = value; };
    text("rate", rate >= 100 ? rate.toFixed(0) : rate.toFixed(1));
    text("first", milliseconds(over(far, "first_token_us", 0.5)));
    text("between", milliseconds(over(far, "between_tokens_us", 0.5)));
    text("between99", milliseconds(over(far, "between_tokens_us", 0.99)));
    text("running", told.running);
    text("queued", told.queued);
    text("pages", told.pages ? `${((told.pages_used / told.pages) * 100).toFixed(0)} %` : "–");
    const ms = (us) => (us === null ? null : us / 1000);
    this.points.push([now.at_ms, rate, ms(over(near, "between_tokens_us", 0.5)),
                      ms(over(near, "between_tokens_us", 0.99)), told.running, told.queued]);
    this.points = this.points.filter(([at_ms]) => now.at_ms - at_ms <= shown_ms);
    const line = (at) => this.points.map((point) => [point[0], point[at]]);
    this.rate.show([line(1)], now.at_ms);
    this.wait.show([line(2), line(3)], now.at_ms);
    this.queue.show([line(4), line(5)], now.at_ms);
  }
}
