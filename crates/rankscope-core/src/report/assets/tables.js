// The same values as tables, and what they measure.

const MOST_ROWS = 400;

function table(columns, rows, attributes) {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
  const cell = (value) => element("td", {}, value === null || value === undefined ? "" : value);
  const body = rows.map((row) => element("tr", {}, ...row.map(cell)));
  return element("div", { class: "scroll", tabindex: "0", role: "region", ...attributes },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

/** One row a point of the longest line, in view. */
function valuesTable(chart) {
  const longest = chart.shown.reduce((a, b) => (b.line.times.length > a.line.times.length ? b : a)).line;
  const inView = longest.times.filter((time) => time >= state.range[0] && time <= state.range[1]);
  const every = Math.ceil(inView.length / MOST_ROWS);
  const times = inView.filter((_, n) => n % every === 0);
  const columns = [t("time"), t("step"), ...chart.shown.map(({ name }) => name)];
  const rows = times.map((time) => {
    const values = chart.shown.map(({ line, role }) => {
      const at = line.times === longest.times ? lastBefore(line.times, time) : nearest(line.times, time);
      const value = at < 0 ? null : line.mean[at];
      if (value === null || value === undefined) return "–";
      return told(value, chart.unit) + (role === "line" ? spread(line.low[at], line.high[at], chart.unit) : "");
    });
    const step = stepAt(time);
    return [moment(time), step === null ? "–" : digitsOfStep(step), ...values];
  });
  return table(columns, rows, { "aria-label": chart.title() });
}

function digitsOfStep(step) {
  return Math.round(step).toLocaleString("en");
}

/** 0-3, 5: as few signs as it takes. */
function inShort(ranks) {
  const parts = [];
  for (const rank of ranks) {
    const last = parts[parts.length - 1];
    if (last && last[1] + 1 === rank) last[1] = rank;
    else parts.push([rank, rank]);
  }
  return parts.map(([a, b]) => (a === b ? a : `${a}–${b}`)).join(", ");
}

function measuredSection() {
  if (!D.measured.length) return null;
  const rank = state.rank ? state.rank.id : 0;
  const rows = D.measured.filter((m) => m.ranks.includes(rank)).map((m) => {
    const [unit, about, not] = D.about[m.series] || ["", "", null];
    // In Korean what it is not is a sentence of its own.
    const before = inWords(not || "")[1] === "ko" ? ". " : " — not ";
    const meaning = [said(about), not ? element("span", { class: "not" }, before, said(not)) : null];
    const note = m.note ? said(m.note, "small") : null;
    const from = [element("code", {}, inWords(m.source)[0]), m.level ? element("small", {}, ` ${t("level", { level: m.level })}`) : null,
      note && " ", note];
    return [
      element("span", {}, element("b", { class: "scope " + m.scope }, t("scope_" + m.scope)), " ", element("code", {}, m.series), unit ? element("small", {}, " " + unitName(unit)) : ""),
      element("span", {}, ...meaning.filter(Boolean)),
      element("span", {}, ...from.filter(Boolean)),
      element("code", {}, m.identity || "–"),
    ];
  });
  const note = element("p", { class: "note" }, t("measured_note", { n: rank }));
  return element("details", { class: "block", id: "measured" }, element("summary", {}, element("h2", {}, t("measured"))), note,
    table([t("series"), t("meaning"), t("read_from"), t("identity")], rows, { "aria-label": t("measured") }));
}

function missingSection() {
  if (!D.missing.length) return null;
  const ofAll = D.ranks.length;
  const rows = D.missing.map((m) => [
    element("code", {}, m.series),
    said(m.reason),
    said(m.detail),
    ofAll > 1 ? inShort(m.ranks) : null,
  ].slice(0, ofAll > 1 ? 4 : 3));
  const columns = [t("series"), t("reason"), t("what"), t("rank")].slice(0, ofAll > 1 ? 4 : 3);
  return element("details", { class: "block", id: "missing" }, element("summary", {}, element("h2", {}, t("missing"))),
    table(columns, rows, { "aria-label": t("missing") }));
}

function eventsSection() {
  if (!D.marks.length) return null;
  const rows = D.marks.map(([time, kind, rank, words]) => [
    element("button", { type: "button", class: "link", onclick: () => setCursor(time, true) }, moment(time)),
    element("b", { class: "kind " + kind }, t("mark_" + kind)),
    D.ranks.length > 1 ? element("span", { class: "tight" }, t("rank_n", { n: rank })) : null,
    said(words),
  ].filter((cell) => cell !== null));
  const columns = [t("time"), t("what"), ...(D.ranks.length > 1 ? [t("rank")] : []), t("value")];
  return element("details", { class: "block", id: "events", open: rows.length <= 30 },
    element("summary", {}, element("h2", {}, t("events"))), table(columns, rows, { "aria-label": t("events") }));
}
