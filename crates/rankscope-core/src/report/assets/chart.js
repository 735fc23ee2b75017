// One chart: lines, bands, stacks and limits over the time that all charts share.

const MARGIN = { left: 62, right: 14, top: 10, bottom: 22 };
const FULL = new Set(["gpu_utilization", "main_thread", "gpu_memory", "node_cpu", "file_systems"]);
/** Names of phases that a legend has room for; each band says its own. */
const MOST_NAMES = 12;
let chartNumber = 0;

class Chart {
  /** `lines()`: what is drawn now, as [{line, role, name, colour}]. */
  constructor(id, unit, title, lines, height) {
    Object.assign(this, { id, unit, title, lines, height: height || 190, number: (chartNumber += 1) });
    this.heading = element("h3", {});
    this.whose = element("p", { class: "whose" });
    this.legend = element("ul", { class: "legend" });
    this.names = element("ul", { class: "legend phases" });
    this.told = element("ul", { class: "told" });
    this.plot = element("div", {
      class: "plot", tabindex: "0", role: "slider", "data-chart": id,
      "aria-valuemin": START, "aria-valuemax": END, "aria-orientation": "horizontal",
      onkeydown: (event) => moveByKey(event),
    });
    this.table = element("details", { class: "values" }, element("summary", {}));
    this.table.addEventListener("toggle", () => this.fillTable());
    this.figure = element("figure", { class: "chart", id: "chart-" + id }, this.heading, this.whose, this.legend, this.names, this.told, this.plot, this.table);
    pointing(this);
  }

  draw() {
    this.heading.textContent = this.title();
    this.plot.setAttribute("aria-label", this.title());
    this.table.firstChild.textContent = t("table");
    this.shown = this.lines().filter(({ line }) => line);
    this.figure.hidden = !this.shown.some(({ role }) => role !== "limit");
    if (this.figure.hidden) return;
    const width = this.plot.clientWidth || 600;
    this.size = { width, height: this.height, right: width - MARGIN.right, bottom: this.height - MARGIN.bottom };
    this.scale();
    this.svg = shape("svg", { width, height: this.height, viewBox: `0 0 ${width} ${this.height}`, "aria-hidden": "true" });
    // What a number is drawn at can be read back.
    this.svg.dataset.values = [this.bottom, this.top];
    this.svg.dataset.pixels = [this.size.bottom, MARGIN.top];
    this.axes();
    const clip = `clip-${this.number}`;
    shape("rect", { x: MARGIN.left, y: 0, width: this.size.right - MARGIN.left, height: this.size.bottom + 1 },
      shape("clipPath", { id: clip }, shape("defs", {}, this.svg)));
    this.inside = shape("g", { "clip-path": `url(#${clip})` }, this.svg);
    this.phases();
    this.stacks();
    for (const one of this.shown) if (one.role === "line") this.line(one);
    for (const one of this.shown) if (one.role === "limit") this.limit(one);
    this.marks();
    this.pointer = shape("line", { class: "pointer", y1: MARGIN.top, y2: this.size.bottom }, this.svg);
    this.dots = shape("g", {}, this.svg);
    this.plot.replaceChildren(this.svg);
    this.items();
    this.read();
    if (this.table.open) this.fillTable();
  }

  x(time) {
    const [from, until] = state.range;
    return MARGIN.left + ((time - from) / (until - from)) * (this.size.right - MARGIN.left);
  }

  y(value) {
    return this.size.bottom - ((value - this.bottom) / (this.top - this.bottom)) * (this.size.bottom - MARGIN.top);
  }

  timeAt(x) {
    const [from, until] = state.range;
    const share = (x - MARGIN.left) / (this.size.right - MARGIN.left);
    return from + Math.min(1, Math.max(0, share)) * (until - from);
  }

  /** Indices of what is in view, and one more on each side. */
  view(line) {
    const from = Math.max(0, lastBefore(line.times, state.range[0]));
    return [from, Math.min(line.times.length - 1, lastBefore(line.times, state.range[1]) + 1)];
  }

  scale() {
    let most = 0;
    let least = 0;
    let limit = 0;
    const sums = new Map();
    for (const { line, role } of this.shown) {
      const [from, until] = this.view(line);
      for (let at = from; at <= until; at += 1) {
        if (line.mean[at] === null) continue;
        const value = role === "stack" ? (sums.get(at) || 0) + line.mean[at] : line.high[at];
        if (role === "stack") sums.set(at, value);
        if (role === "limit") limit = Math.max(limit, value);
        else most = Math.max(most, value);
        least = Math.min(least, line.low[at]);
      }
    }
    this.limitAbove = limit > 0 && most < limit * 0.1 ? limit : 0;
    const top = Math.max(most, this.limitAbove ? 0 : limit);
    this.bottom = this.training && least < 0 ? least * 1.05 : 0;
    this.top = FULL.has(this.id) && top <= 100 ? 100 : top * 1.08 || (this.unit === "%" ? 5 : 1);
    if (this.unit === "%" && this.top < 5) this.top = 5;
  }

  axes() {
    const { right, bottom } = this.size;
    const { name, by } = unitFor(this.unit, this.top);
    const all = this.bottom < 0 ? [this.bottom, 0, this.top] : ticks(this.top, this.unit);
    all.forEach((value) => {
      const y = this.y(value);
      shape("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }, this.svg);
      const label = shape("text", { class: "tick", x: MARGIN.left - 7, y: y + 3.5, "text-anchor": "end" }, this.svg);
      label.textContent = digits(value / by) + (name && value === all[all.length - 1] ? " " + name : "");
      // With a long unit it begins at the edge, so that its first digits are seen.
      if (label.textContent.length * 6.4 > MARGIN.left - 7) {
        label.setAttribute("x", 0);
        label.setAttribute("text-anchor", "start");
      }
    });
    const shown = timeTicks(state.range, Math.max(2, (right - MARGIN.left) / 78));
    for (const [time, text] of shown) {
      const x = this.x(time);
      shape("line", { class: "grid", x1: x, x2: x, y1: bottom, y2: bottom + 4 }, this.svg);
      if (x > right - 12 || x < MARGIN.left + 10) continue;
      shape("text", { class: "tick", x, y: bottom + 16, "text-anchor": "middle" }, this.svg).textContent = text;
    }
    const begun = epochs().filter(([time]) => time > state.range[0] && time < state.range[1]);
    if (begun.length <= 60) {
      for (const [time] of begun) {
        shape("line", { class: "epoch", x1: this.x(time), x2: this.x(time), y1: MARGIN.top, y2: bottom }, this.svg);
      }
    }
  }

  /** Runs of points without a gap, each as [[x, index], …]. */
  runs(line, values) {
    const all = [];
    let run = null;
    const [from, until] = this.view(line);
    for (let at = from; at <= until; at += 1) {
      const gone = values[at] === null || values[at] === undefined;
      if (gone || (run && isGap(line.track, line.times[at - 1], line.times[at]))) run = null;
      if (gone) continue;
      if (!run) all.push((run = []));
      run.push([this.x(line.times[at]), at]);
    }
    return all;
  }

  line({ line, colour, dashed }) {
    for (const run of this.runs(line, line.mean)) {
      if (line.high !== line.mean && run.length > 1) {
        const upper = run.map(([x, at]) => `${x.toFixed(1)},${this.y(line.high[at]).toFixed(1)}`);
        const lower = run.map(([x, at]) => `${x.toFixed(1)},${this.y(line.low[at]).toFixed(1)}`).reverse();
        shape("polygon", { class: "band", points: [...upper, ...lower].join(" "), fill: colour, stroke: colour }, this.inside);
      }
      const path = run.map(([x, at], n) => `${n ? "L" : "M"}${x.toFixed(2)} ${this.y(line.mean[at]).toFixed(2)}`).join("");
      const kind = dashed ? "curve dashed" : "curve";
      if (run.length > 1) shape("path", { class: kind, d: path, stroke: colour, "data-series": line.series || this.id }, this.inside);
      else shape("circle", { cx: run[0][0], cy: this.y(line.mean[run[0][1]]), r: 2.2, fill: colour, "data-series": line.series || this.id }, this.inside);
    }
  }

  stacks() {
    const parts = this.shown.filter(({ role }) => role === "stack");
    const base = new Map();
    for (const { line, colour } of parts) {
      const below = (at) => base.get(at) || 0;
      for (const run of this.runs(line, line.mean)) {
        const upper = run.map(([x, at]) => `${x.toFixed(2)},${this.y(below(at) + line.mean[at]).toFixed(2)}`);
        const lower = run.map(([x, at]) => `${x.toFixed(2)},${this.y(below(at)).toFixed(2)}`).reverse();
        shape("polygon", { class: "stack", points: [...upper, ...lower].join(" "), fill: colour, "data-series": line.series }, this.inside);
      }
      line.mean.forEach((value, at) => base.set(at, below(at) + (value || 0)));
    }
  }

  limit({ line }) {
    for (const run of this.runs(line, line.mean)) {
      let path = "";
      run.forEach(([x, at], n) => {
        const y = this.y(line.mean[at]).toFixed(2);
        path += n ? `H${x.toFixed(2)}V${y}` : `M${x.toFixed(2)} ${y}`;
      });
      if (!this.limitAbove) shape("path", { class: "limit", d: path, "data-series": line.series }, this.inside);
    }
    const last = line.mean[Math.max(0, lastBefore(line.times, state.range[1]))];
    if (last === null || last === undefined || this.limitLabelled) return;
    const y = this.limitAbove ? MARGIN.top + 10 : this.y(last) - 5;
    const text = shape("text", { class: "limit-label", x: MARGIN.left + 5, y: Math.max(9, y) }, this.svg);
    text.textContent = this.limitAbove ? t("limit_above", { limit: told(last, this.unit) }) : t("line_limit") + " " + told(last, this.unit);
  }

  phases() {
    this.names.replaceChildren();
    this.told.replaceChildren();
    if (!this.id.startsWith("gpu_") || !state.rank) return;
    const lanes = D.lanes.filter(({ ranks }) => ranks.includes(state.rank.id));
    const height = (this.size.bottom - MARGIN.top) / lanes.length;
    const labelled = lanes.length > 1 && lanes.some(({ gpu }) => gpu !== undefined);
    lanes.forEach(({ stretches, gpu }, lane) => {
      const y = MARGIN.top + lane * height;
      for (const [since, length, name] of stretches) {
        const [from, until] = [START + since, START + since + length];
        if (until < state.range[0] || from > state.range[1]) continue;
        const band = shape("rect", {
          class: "phase", "data-name": name, "data-from": from, "data-until": until, "data-gpu": gpu ?? "",
          x: this.x(from), width: Math.max(0.5, this.x(until) - this.x(from)), y, height, fill: phaseColour(name),
        }, this.inside);
        shape("title", {}, band).textContent = (labelled ? laneName(gpu) + ": " : "") + phaseName(name);
      }
      if (labelled && height > 12) {
        shape("text", { class: "lane", x: this.size.right - 4, y: y + 11, "text-anchor": "end" }, this.svg).textContent = laneName(gpu);
      }
    });
    const all = lanes.flatMap(({ stretches }) => stretches.map(([, , name]) => name));
    for (const name of [...new Set(all)].slice(0, MOST_NAMES)) {
      const swatch = element("i", { class: "swatch phase", style: `--c:${phaseColour(name)}` });
      this.names.append(element("li", {}, swatch, element("span", {}, phaseName(name))));
    }
    if (this.id === "gpu_utilization" || !D.charts.some(({ id }) => id === "gpu_utilization")) this.spent(lanes);
  }

  /** How each GPU's time was spent, and what can't be told of it. */
  spent(lanes) {
    const known = lanes.filter(({ shares }) => shares);
    for (const { gpu, shares, missing } of known) {
      const parts = shares.map(([name, share]) => `${phaseName(name)} ${percentOf(share)}`);
      this.told.append(element("li", { "data-gpu": gpu }, t("phases_told", { gpu, shares: parts.join(" · ") })));
      this.told.append(...missing.map((why) => said(why, "li")));
    }
    if (known.length) this.told.append(element("li", {}, t("phases_row", { row: lasting(known[0].row) })));
  }

  marks() {
    let free = -Infinity;
    for (const [time, kind, rank, words] of D.marks) {
      if (!state.rank || rank !== state.rank.id || time < state.range[0] || time > state.range[1]) continue;
      const x = this.x(time);
      const group = shape("g", { class: "mark " + kind }, this.svg);
      shape("line", { x1: x, x2: x, y1: MARGIN.top, y2: this.size.bottom }, group);
      shape("path", { d: `M${x - 4} ${MARGIN.top - 7}h8l-4 7z` }, group);
      shape("title", {}, group).textContent = `${moment(time)}: ${inWords(words)[0]}`;
      const label = t("mark_" + kind);
      const space = label.length * 6.4 + 12;
      if (this.id !== "memory" || kind === "end" || x - space < Math.max(free, MARGIN.left)) continue;
      shape("text", { x: x - 6, y: MARGIN.top + 4, "text-anchor": "end" }, group).textContent = label;
      free = x;
    }
  }

  items() {
    this.outputs = this.shown.map((one) => {
      const output = element("output", { "data-series": one.line.series || this.id });
      const swatch = element("i", { class: "swatch " + one.role + (one.dashed ? " dashed" : ""), style: `--c:${one.colour || ""}` });
      this.legend.append(element("li", {}, swatch, element("span", {}, one.name), output));
      return output;
    });
    this.legend.replaceChildren(...[...this.legend.children].slice(-this.shown.length));
  }

  /** What each line says at the cursor. */
  read() {
    if (this.figure.hidden || !this.svg) return;
    const time = state.cursor;
    const x = this.x(time);
    const inView = time >= state.range[0] && time <= state.range[1];
    this.pointer.setAttribute("visibility", inView ? "visible" : "hidden");
    this.pointer.setAttribute("x1", x);
    this.pointer.setAttribute("x2", x);
    this.dots.replaceChildren();
    const spoken = [];
    this.shown.forEach(({ line, role, name, colour }, n) => {
      const output = this.outputs[n];
      const at = nearest(line.times, time);
      const near = at >= 0 && (this.training || Math.abs(line.times[at] - time) <= 2.5 * bucketAt(line.track, line.times[at]) + 10000);
      const value = near ? line.mean[at] : null;
      if (value === null || value === undefined) {
        output.textContent = "–";
        output.title = t("missing_value");
        ["data-value", "data-time", "data-min", "data-max"].forEach((name) => output.removeAttribute(name));
        return;
      }
      output.removeAttribute("title");
      output.dataset.value = value;
      output.dataset.time = line.times[at];
      output.dataset.min = line.low[at];
      output.dataset.max = line.high[at];
      output.replaceChildren(told(value, this.unit));
      if (role === "line") output.append(element("small", {}, spread(line.low[at], line.high[at], this.unit)));
      spoken.push(`${name} ${told(value, this.unit)}`);
      if (role === "line" && inView) shape("circle", { cx: this.x(line.times[at]), cy: this.y(value), r: 3, class: "dot", fill: colour }, this.dots);
    });
    this.plot.setAttribute("aria-valuenow", Math.round(time));
    this.plot.setAttribute("aria-valuetext", `${moment(time)}: ${spoken.join(", ")}`);
  }

  fillTable() {
    this.table.querySelector("div")?.remove();
    if (!this.table.open || !this.shown?.length) return;
    this.table.append(valuesTable(this));
  }
}

/** Of a GPU, as a diagnosis calls them; the training's own phases have names and colours of their own. */
const PHASES = { idle: "var(--s1)", busy: "var(--s2)", collective_wait: "var(--s3)", low_power: "var(--s6)", unknown: "var(--s5)" };

function phaseName(name) {
  return D.words["phase_" + name] ? t("phase_" + name) : name;
}

function laneName(gpu) {
  return gpu === undefined ? t("marked") : "GPU " + gpu;
}

/** As the facts above say it too. */
function percentOf(share) {
  return (share * 100 < 9.95 ? (share * 100).toFixed(1) : (share * 100).toFixed(0)) + "\u00a0%";
}

function phaseColour(name) {
  if (Object.hasOwn(PHASES, name)) return PHASES[name];
  let hash = 0;
  for (const c of name) hash = (hash * 31 + c.codePointAt(0)) % 8;
  return `var(--s${hash})`;
}
