// What all parts use: the data, texts in two languages, numbers as people read them, elements.

const D = JSON.parse(document.getElementById("data").textContent);
const [START, END] = D.span;
const state = { language: "en", rank: D.ranks[0] || null, range: [START, END], cursor: null, mini: null };

D.measured = D.measured.map(([series, ranks, ...others]) => {
  const [scope, source, level, identity, note] = others.map((place) => (place === null ? null : D.texts[place]));
  return { series: D.texts[series], ranks, scope, source, level, identity, note };
});

for (const track of D.tracks) {
  let time = 0;
  track.times = track.times.map((since) => (time += since));
  track.map = new Map();
  for (const line of track.lines) {
    const mean = line.mean || track.times.map(() => line.value);
    const whole = { series: line.series, track, times: track.times, mean, low: line.low || mean, high: line.high || mean };
    track.map.set(line.series + "|" + (line.rank ?? ""), whole);
  }
}

/** What a rank's chart shows of a series: of its own processes, of its recorder, or of one that read the same thing. */
function lineOf(rank, series) {
  const track = rank && D.tracks[rank.track];
  if (!track) return null;
  const own = track.map.get(series + "|" + rank.id) || track.map.get(series + "|");
  const other = track.elsewhere[series];
  return own || (other === undefined ? null : D.tracks[other].map.get(series + "|") || null);
}

function t(key, values) {
  const row = D.words[key];
  const text = row ? row[state.language === "ko" ? 1 : 0] : key;
  return text.replace(/\{(\w+)\}/g, (hole, name) => (values && name in values ? values[name] : hole));
}

/** A sentence that was made in English: its text here, and in which language that is. */
function inWords(sentence) {
  const korean = state.language === "ko" && Object.hasOwn(D.korean, sentence) ? D.korean[sentence] : null;
  return [korean ?? sentence, korean === null ? "en" : "ko"];
}

function said(sentence, tag) {
  const [text, lang] = inWords(sentence);
  return element(tag || "span", { lang }, text);
}

function remember(name, value) {
  // Storage is refused to a page in a sandboxed frame.
  try {
    if (value === undefined) return localStorage.getItem("rankscope." + name);
    localStorage.setItem("rankscope." + name, value);
  } catch (_) {}
  return null;
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function shape(tag, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (parent) parent.append(made);
  return made;
}

/** Index of the last time that is not after this one; -1: none. */
function lastBefore(times, time) {
  let low = -1;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

function nearest(times, time) {
  const at = lastBefore(times, time);
  if (at < 0) return times.length ? 0 : -1;
  return at + 1 < times.length && times[at + 1] - time < time - times[at] ? at + 1 : at;
}

/** How long a bucket is at that time; what is further apart is a gap. */
function bucketAt(track, time) {
  const piece = track.pieces.find(([until]) => time <= until) || track.pieces[track.pieces.length - 1];
  return piece ? piece[1] : Infinity;
}

function isGap(track, before, after) {
  return track ? after - before > 2.5 * Math.max(bucketAt(track, after), bucketAt(track, before), 2000) + 10000 : false;
}

// Numbers.

const SIZES = [["TiB", 2 ** 40 / 1e6], ["GiB", 2 ** 30 / 1e6], ["MiB", 2 ** 20 / 1e6], ["KiB", 2 ** 10 / 1e6]];
const RATES = [["GB/s", 1e3], ["MB/s", 1], ["kB/s", 1e-3]];

/** Units that are words. */
const unitName = (unit) => (D.words["unit_" + unit] ? t("unit_" + unit) : unit);

/** In which unit values up to `top` are shown, and how many of the series' unit one of it is. */
function unitFor(unit, top) {
  const list = unit === "MB" ? SIZES : unit === "MB/s" ? RATES : null;
  if (!list) return { name: unit === "count" || unit === "" ? "" : unitName(unit), by: 1 };
  const [name, by] = list.find(([, by]) => top >= by) || list[list.length - 1];
  return { name, by };
}

function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return value.toPrecision(3).replace(/\.?0+e/, "e");
  const text = size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toPrecision(2);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** With its unit; a percentage of a percentage is never more exact than a tenth. */
function told(value, unit) {
  const shown = unitFor(unit, Math.abs(value));
  return digits(value / shown.by) + (shown.name ? "\u00a0" + shown.name : "");
}

/** ` 3.1–3.4`, in the unit of the higher; nothing where both look the same. */
function spread(low, high, unit) {
  const { by } = unitFor(unit, Math.abs(high));
  const [a, b] = [digits(low / by), digits(high / by)];
  return a === b ? "" : `\u00a0${a}–${b}`;
}

function ticks(top, unit) {
  const { by } = unitFor(unit, top);
  const most = top / by;
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = unit === "MB"
    ? 2 ** Math.round(Math.log2(rough))
    : [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const all = [];
  for (let n = 0; n * step <= most * 1.0001; n += 1) all.push(n * step * by);
  return all;
}

// Times.

const two = (n) => String(n).padStart(2, "0");

function clock(time, withSeconds) {
  const date = new Date(time);
  const text = two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
  return withSeconds ? text + ":" + two(date.getUTCSeconds()) : text;
}

function day(time) {
  return new Date(time).toISOString().slice(5, 10);
}

function moment(time) {
  return (END - START > 864e5 ? day(time) + " " : "") + clock(time, true) + " UTC";
}

function lasting(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds >= 86400) return Math.floor(seconds / 86400) + " d " + Math.floor((seconds / 3600) % 24) + " h";
  if (seconds >= 3600) return Math.floor(seconds / 3600) + " h " + Math.floor((seconds / 60) % 60) + " min";
  if (seconds >= 60) return Math.floor(seconds / 60) + " min " + Math.floor(seconds % 60) + " s";
  return (seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)) + " s";
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];

function timeTicks([from, until], most) {
  const step = 1000 * (TIME_STEPS.find((s) => (until - from) / (s * 1000) <= most) || 2592000);
  const all = [];
  for (let time = Math.ceil(from / step) * step; time <= until; time += step) all.push(time);
  const label = (time) => {
    if (step >= 864e5 || (time % 864e5 === 0 && until - from > 864e5)) return day(time);
    return clock(time, step < 60000);
  };
  return all.map((time) => [time, label(time)]);
}

// The training's own axis: what was marked, else the steps of the metric with most points.

const TRAINING = D.training.map((m) => ({ name: m.name, times: m.times, mean: m.values, low: m.values, high: m.values, steps: m.steps }));

function stepsOf(rank) {
  const marked = lineOf(rank, "training_step");
  if (marked) return { times: marked.times, steps: marked.mean };
  const longest = [...TRAINING].sort((a, b) => b.times.length - a.times.length)[0];
  return longest && longest.steps.some((step) => step > 0) ? longest : null;
}

function stepAt(time) {
  const known = stepsOf(state.rank);
  const at = known ? lastBefore(known.times, time) : -1;
  return at < 0 ? null : known.steps[at];
}

/** Where an epoch begins: time, epoch. */
function epochs() {
  const line = lineOf(state.rank, "training_epoch");
  if (!line) return [];
  const all = [];
  line.mean.forEach((epoch, at) => {
    if (epoch !== null && (!all.length || all[all.length - 1][1] !== epoch)) all.push([line.times[at], epoch]);
  });
  return all;
}
