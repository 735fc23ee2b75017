// The page: its sections, the one cursor, the choice of rank, time, language and colours.

const app = document.getElementById("app");
const COLOURS = { anon: "var(--anon)", shmem: "var(--shmem)", cache: "var(--cache)", held: "var(--held)", held_own: "var(--held)" };
let charts = [];
let reading;
let minis = [];

/** What charts of the data show of the chosen rank. */
function linesOf(def) {
  let n = 0;
  return def.lines.map(([series, role, word, label]) => {
    const colour = role === "limit" ? "var(--limit)" : COLOURS[word] || `var(--s${n++ % 8})`;
    const name = t("line_" + word) + (label ? " " + label : "");
    return { line: lineOf(state.rank, series), role, name, colour, dashed: def.node };
  });
}

function chartOf(def) {
  const small = ["cpu_waits", "stalls", "file_systems"].includes(def.id);
  const chart = new Chart(def.id, def.unit, () => t("chart_" + def.id), () => linesOf(def), def.id === "memory" ? 260 : small ? 130 : 170);
  chart.def = def;
  return chart;
}

/** Whose the numbers of a chart are: one word for the scope, and who shares it. */
function whose(chart) {
  if (!chart.def || !chart.shown) return;
  const rank = state.rank.id;
  const series = chart.def.lines.map(([name]) => name);
  const known = D.measured.filter((m) => series.includes(m.series) && m.ranks.includes(rank));
  const scopes = [...new Set(known.map((m) => m.scope))];
  const parts = scopes.map((scope) => element("b", { class: "scope " + scope }, t("scope_" + scope)));
  const identities = new Set(known.filter((m) => m.scope !== "process" && m.identity).map((m) => m.identity));
  const others = D.measured.filter((m) => identities.has(m.identity) && series.includes(m.series)).flatMap((m) => m.ranks);
  const sharing = [...new Set(others)].sort((a, b) => a - b);
  if (sharing.length > 1) parts.push(element("span", {}, t("shared_by", { ranks: inShort(sharing) })));
  const limit = known.find((m) => /limit_(megabytes|cores)$/.test(m.series) && m.level);
  if (limit) parts.push(element("span", {}, t("limit_at", { level: limit.level })));
  chart.whose.replaceChildren(...parts);
}

function tierText(track) {
  const middle = (state.range[0] + state.range[1]) / 2;
  const tier = track.tiers.find(([, until]) => middle <= until) || track.tiers[track.tiers.length - 1];
  if (!tier) return null;
  const [name, , row] = tier;
  const bucket = bucketAt(track, middle);
  return bucket > row * 1.2 ? t("many_" + name, { n: lasting(bucket) }) : t("one_" + name, { n: lasting(row) });
}

function build() {
  charts = [];
  const training = TRAINING.map((metric, n) => {
    const chart = new Chart("metric-" + n, "", () => metric.name, () => [{ line: metric, role: "line", name: metric.name, colour: `var(--s${n % 8})` }], 150);
    chart.training = true;
    return chart;
  });
  const own = D.charts.filter((def) => !def.node).map(chartOf);
  const node = D.charts.filter((def) => def.node).map(chartOf);
  charts = [...training, ...own, ...node];
  const grid = (list) => element("div", { class: "charts" }, ...list.map((chart) => chart.figure));
  const sections = [toolbar(), manyRanks()];
  if (training.length || stepsOf(state.rank)) sections.push(element("section", {}, element("h2", {}, t("training")), stepAxis(), grid(training)));
  sections.push(element("section", {}, element("h2", {}, t("resources")), element("p", { class: "note", id: "tier" }), grid(own)));
  if (node.length) {
    const details = element("details", { class: "block shared-node", id: "node" },
      element("summary", {}, element("h2", {}, t("node_title"))), element("p", { class: "note" }, t("node_note")), grid(node));
    details.addEventListener("toggle", () => node.forEach((chart) => (chart.draw(), whose(chart))));
    sections.push(details);
  }
  sections.push(eventsSection(), measuredSection(), missingSection());
  app.replaceChildren(...sections.filter(Boolean));
  draw();
}

function draw() {
  for (const chart of charts) {
    chart.draw();
    whose(chart);
  }
  const track = state.rank && D.tracks[state.rank.track];
  document.getElementById("tier").textContent = (track && t("band_note", { tier: tierText(track) })) || "";
  drawSteps();
  drawMinis();
  say();
}

// The toolbar.

function toolbar() {
  const ranges = [["range_all", START]];
  if (END - START > 5400e3) ranges.push(["range_hour", END - 3600e3]);
  if (END - START > 900e3) ranges.push(["range_tail", END - 600e3]);
  const buttons = ranges.map(([key, from]) => element("button", {
    type: "button", "data-from": from, onclick: () => setRange([from, END]),
  }, t(key)));
  buttons.push(element("button", { type: "button", class: "zoomed", hidden: true, onclick: () => setRange([START, END]) }, t("range_reset")));
  const parts = [];
  if (D.ranks.length > 1) {
    const options = D.ranks.map((rank) => element("option", { value: rank.id, selected: rank === state.rank }, t("rank_n", { n: rank.id }) + (rank.node ? " · " + rank.node : "")));
    parts.push(element("label", {}, t("rank") + " ", element("select", { id: "rank", onchange: (e) => setRank(Number(e.target.value)) }, ...options)));
  }
  parts.push(element("div", { class: "ranges", role: "group", "aria-label": t("range") }, ...buttons));
  reading = element("output", { id: "reading", "aria-live": "off" });
  const hint = element("p", { class: "hint" }, t("hint"));
  return element("div", { class: "bar" }, element("div", { class: "toolbar" }, ...parts, hint), reading);
}

function setRange(range) {
  state.range = range;
  const known = [...app.querySelectorAll(".ranges button[data-from]")];
  draw();
  const on = known.find((button) => Number(button.dataset.from) === range[0] && range[1] === END);
  known.forEach((button) => button.setAttribute("aria-pressed", button === on));
  app.querySelector(".zoomed").hidden = Boolean(on);
}

function setRank(id) {
  state.rank = D.ranks.find((rank) => rank.id === id) || state.rank;
  const select = document.getElementById("rank");
  if (select) select.value = String(state.rank.id);
  const open = new Set([...app.querySelectorAll("details[open][id]")].map((details) => details.id));
  document.getElementById("measured")?.replaceWith(measuredSection());
  for (const id of open) if (document.getElementById(id)) document.getElementById(id).open = true;
  draw();
  setCursor(state.cursor);
}

// The cursor.

/** Where it can stand: the points of the chosen rank. */
function stops() {
  const track = state.rank && D.tracks[state.rank.track];
  const times = track && track.times.length ? track.times : TRAINING.flatMap((m) => m.times).sort((a, b) => a - b);
  return times.length ? times : [START, END];
}

/** Where the memory that counts was highest: what is asked first. */
function peakOf(rank) {
  const def = D.charts.find((def) => def.id === "memory");
  const line = def && def.lines.filter(([, role]) => role === "line").map(([series]) => lineOf(rank, series)).find(Boolean);
  return line ? line.times[line.high.reduce((best, value, at) => (value !== null && value >= (line.high[best] ?? -1) ? at : best), 0)] : null;
}

function setCursor(time, exactly) {
  const times = stops();
  state.cursor = exactly ? time : times[inView(times, nearest(times, time))];
  charts.forEach((chart) => chart.read());
  drawMinis(true);
  say();
}

/** The same point, or the first or last that is in view. */
function inView(times, at) {
  const first = lastBefore(times, state.range[0] - 1) + 1;
  const last = Math.max(first, lastBefore(times, state.range[1]));
  return Math.min(times.length - 1, last, Math.max(first, at));
}

function moveByKey(event) {
  const times = stops();
  const at = nearest(times, state.cursor);
  const by = event.shiftKey ? 10 : 1;
  const to = { ArrowLeft: at - by, ArrowRight: at + by, ArrowDown: at - by, ArrowUp: at + by, PageDown: at - 10, PageUp: at + 10, Home: 0, End: times.length }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  setCursor(times[inView(times, to)]);
}

function pointing(chart) {
  let from = null;
  let chosen = null;
  const xOf = (event) => event.clientX - chart.plot.getBoundingClientRect().left;
  chart.plot.addEventListener("pointermove", (event) => {
    if (!chart.size) return;
    setCursor(chart.timeAt(xOf(event)));
    if (from === null || event.pointerType === "touch") return;
    const [a, b] = [from, xOf(event)].sort((p, q) => p - q);
    chosen ||= shape("rect", { class: "chosen", y: MARGIN.top, height: chart.size.bottom - MARGIN.top }, chart.svg);
    chosen.setAttribute("x", a);
    chosen.setAttribute("width", b - a);
  });
  chart.plot.addEventListener("pointerdown", (event) => {
    if (event.button === 0) from = xOf(event);
  });
  window.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [a, b] = [from, xOf(event)].sort((p, q) => p - q);
    from = null;
    chosen?.remove();
    chosen = null;
    if (b - a > 12 && event.pointerType !== "touch" && chart.svg) setRange([chart.timeAt(a), chart.timeAt(b)]);
  });
}

/** The one line that reads across all charts. */
function say() {
  const time = state.cursor;
  const parts = [element("b", {}, t("at", { time: moment(time) }))];
  const step = stepAt(time);
  const epoch = epochs().filter(([begun]) => begun <= time).pop();
  if (step !== null) parts.push(t("at_step", { step: digitsOfStep(step) }));
  if (epoch) parts.push(t("at_epoch", { epoch: digitsOfStep(epoch[1]) }));
  if (step === null) parts.push(t("after_start", { time: lasting(time - START) }));
  for (const chart of charts.filter((chart) => ["memory", "cpu", "gpu_utilization"].includes(chart.id) && !chart.figure.hidden)) {
    const value = (role) => {
      const n = chart.shown.findIndex((one) => one.role === role);
      const text = n < 0 ? undefined : chart.outputs[n].dataset.value;
      return text === undefined ? null : Number(text);
    };
    const [now, limit] = [value("line"), value("limit")];
    if (now === null) continue;
    const of = limit === null ? told(now, chart.unit) : share(now, limit, chart.unit);
    parts.push(element("span", { "data-of": chart.id }, `${t({ memory: "fact_short_memory", cpu: "fact_short_cpu", gpu_utilization: "fact_short_gpu" }[chart.id])} ${of}`));
  }
  reading.replaceChildren(...parts.flatMap((part, n) => (n ? [element("span", { class: "dot" }, " · "), part] : [part])));
}

/** 58.1 of 64 GiB. */
function share(now, limit, unit) {
  const { name, by } = unitFor(unit, limit);
  return t("of", { value: digits(now / by), limit: digits(limit / by) + (name ? " " + name : "") });
}

// Steps and epochs on the axis of time.

function stepAxis() {
  return element("figure", { class: "chart steps" }, element("h3", {}, t("steps")), element("div", { id: "steps" }));
}

function drawSteps() {
  const host = document.getElementById("steps");
  const known = stepsOf(state.rank);
  if (!host) return;
  host.parentElement.hidden = !known;
  if (!known) return;
  const width = host.clientWidth || 600;
  const svg = shape("svg", { width, height: 34, viewBox: `0 0 ${width} 34`, role: "img", "aria-label": t("steps") });
  const right = width - MARGIN.right;
  const x = (time) => MARGIN.left + ((time - state.range[0]) / (state.range[1] - state.range[0])) * (right - MARGIN.left);
  shape("line", { class: "axis", x1: MARGIN.left, x2: right, y1: 14, y2: 14 }, svg);
  const shown = known.times.map((time, n) => [time, known.steps[n]]).filter(([time, step]) => time >= state.range[0] && time <= state.range[1] && step !== null);
  if (shown.length) {
    const [low, high] = [shown[0][1], shown[shown.length - 1][1]];
    const rough = Math.max(1, (high - low) / Math.max(2, (right - MARGIN.left) / 90));
    const power = 10 ** Math.floor(Math.log10(rough));
    const every = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
    let next = Math.ceil(low / every) * every;
    shown.forEach(([time, step], n) => {
      const [before, last] = shown[Math.max(0, n - 1)];
      for (; next <= step; next += every) {
        // Between two points it is taken to have gone evenly.
        const at = x(step > last ? before + ((next - last) / (step - last)) * (time - before) : time);
        shape("line", { class: "axis", x1: at, x2: at, y1: 14, y2: 19 }, svg);
        if (at < right - 14) shape("text", { class: "tick", x: at, y: 31, "text-anchor": "middle" }, svg).textContent = digitsOfStep(next);
      }
    });
  }
  let free = -Infinity;
  for (const [time, epoch] of epochs()) {
    if (time < state.range[0] || time > state.range[1]) continue;
    shape("path", { class: "epoch-mark", d: `M${x(time)} 6v8` }, svg);
    const text = t("at_epoch", { epoch: digitsOfStep(epoch) });
    if (x(time) < free || x(time) + text.length * 6.5 > right) continue;
    shape("text", { class: "tick", x: x(time) + 3, y: 10 }, svg).textContent = text;
    free = x(time) + text.length * 6.5 + 8;
  }
  host.replaceChildren(svg);
}

// Many ranks at one look.

/** The line that a small picture shows of a rank. */
function mainLine(def, rank) {
  return def.lines.filter(([, role]) => role === "line").map(([series]) => lineOf(rank, series)).find(Boolean);
}

function manyRanks() {
  minis = [];
  if (D.ranks.length < 2) return null;
  const choices = D.charts.filter((def) => ["memory", "cpu", "gpu_utilization", "gpu_power", "process_memory"].includes(def.id));
  if (!choices.length) return null;
  // Of ranks in one container what they are in says nothing of one of them.
  const differs = (def) => new Set(D.ranks.map((rank) => mainLine(def, rank))).size > 1;
  state.mini = choices.find((def) => state.mini && def.id === state.mini.id) || choices.find(differs) || choices[0];
  const select = element("select", { id: "mini", onchange: (e) => ((state.mini = choices[e.target.selectedIndex]), drawMinis()) },
    ...choices.map((def) => element("option", { selected: def === state.mini }, t("chart_" + def.id))));
  minis = D.ranks.map((rank) => {
    const plot = element("div", { class: "mini-plot" });
    const value = element("span", { class: "mini-value" });
    const bad = rank.reason && rank.reason !== "completed" && rank.reason !== "terminated";
    const head = element("span", { class: "mini-head" + (bad ? " bad" : "") }, t("rank_n", { n: rank.id }) + (bad ? " · " + t("reason_" + rank.reason) : ""));
    const button = element("button", { type: "button", class: "mini", "data-rank": rank.id, onclick: () => setRank(rank.id) }, head, value, plot);
    return { rank, button, plot, value };
  });
  return element("section", { id: "ranks" }, element("div", { class: "row" }, element("h2", {}, t("all_ranks")), select),
    element("div", { class: "minis" }, ...minis.map((mini) => mini.button)));
}

function drawMinis(onlyCursor) {
  if (!minis.length) return;
  const { unit, lines } = state.mini;
  const limit = (rank) => lines.filter(([, role]) => role === "limit").map(([series]) => lineOf(rank, series)).find(Boolean);
  const of = minis.map((mini) => ({ ...mini, line: mainLine(state.mini, mini.rank), limit: limit(mini.rank) }));
  const tops = of.flatMap(({ line }) => (line ? line.high.filter((v) => v !== null) : []));
  const limits = of.flatMap(({ limit }) => (limit ? limit.mean.filter((v) => v !== null) : []));
  const most = tops.reduce((a, b) => Math.max(a, b), 0);
  const highest = limits.reduce((a, b) => Math.max(a, b), 0);
  const top = (most > highest * 0.1 ? Math.max(most, highest) : most) * 1.05 || 1;
  for (const { rank, button, plot, value, line, limit } of of) {
    button.setAttribute("aria-pressed", rank === state.rank);
    const at = line ? nearest(line.times, state.cursor) : -1;
    const now = at >= 0 ? line.mean[at] : null;
    value.textContent = now === null ? "–" : told(now, unit);
    if (now !== null) value.dataset.value = now;
    const width = 150;
    const x = (time) => ((time - state.range[0]) / (state.range[1] - state.range[0])) * width;
    if (onlyCursor) {
      plot.querySelector(".pointer")?.setAttribute("d", `M${x(state.cursor)} 0V46`);
      continue;
    }
    const svg = shape("svg", { viewBox: `0 0 ${width} 46`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const y = (v) => 45 - (v / top) * 43;
    if (limit && !(highest > most * 10)) {
      const last = limit.mean.filter((v) => v !== null).pop();
      if (last !== undefined) shape("path", { class: "limit", d: `M0 ${y(last)}H${width}` }, svg);
    }
    if (line) {
      let path = "";
      let pen = "M";
      line.times.forEach((time, n) => {
        if (line.mean[n] === null || time < state.range[0] || time > state.range[1]) return void (pen = "M");
        path += `${pen}${x(time).toFixed(1)} ${y(line.mean[n]).toFixed(1)}`;
        pen = "L";
      });
      shape("path", { class: "curve", d: path, stroke: "var(--held)" }, svg);
    }
    shape("path", { class: "pointer", d: `M${x(state.cursor)} 0V46` }, svg);
    plot.replaceChildren(svg);
  }
}

// Language and colours.

function setLanguage(language) {
  state.language = language;
  document.documentElement.lang = language;
  for (const one of document.querySelectorAll("[data-t]")) {
    one.textContent = t(one.dataset.t, one.dataset.a ? JSON.parse(one.dataset.a) : null);
  }
  for (const one of document.querySelectorAll("[data-s]")) {
    one.dataset.s ||= one.textContent;
    [one.textContent, one.lang] = inWords(one.dataset.s);
  }
  for (const one of document.querySelectorAll("[data-t-label]")) one.setAttribute("aria-label", t(one.dataset.tLabel));
  document.getElementById("language").lang = language === "ko" ? "en" : "ko";
  build();
  setRange(state.range);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  remember("theme", document.documentElement.dataset.theme);
});
document.getElementById("language").addEventListener("click", () => {
  const language = state.language === "ko" ? "en" : "ko";
  remember("language", language);
  setLanguage(language);
});
const theme = remember("theme");
if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;

if (D.focus !== null) state.range = [D.focus, END];
state.cursor = peakOf(state.rank) ?? stops()[stops().length - 1];
setLanguage(remember("language") || ((navigator.language || "").startsWith("ko") ? "ko" : "en"));
let resized = null;
addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(draw);
});
