"use strict";
const views = new Map();  // a chart's element → its Vega view
embedOptions.tooltip = {formatTooltip: (told, safe) => {  // nothing is said of a number that is not there
  const rows = Object.entries(told).filter(([, value]) => value !== null && value !== "null" && value !== "NaN");
  return `<table>${rows.map(([name, value]) => `<tr><td class="key">${safe(name)}</td><td class="value">${safe(value)}</td></tr>`).join("")}</table>`;
}};
const drawn = Promise.all(Object.entries(charts).map(async ([id, spec]) => {
  const place = document.getElementById(id), still = place.innerHTML;
  try { views.set(place, (await vegaEmbed(place, spec, embedOptions)).view); }
  catch (error) { place.innerHTML = still; throw error; }  // the picture stays
})).then(() => { document.documentElement.dataset.drawn = "yes"; });

for (const legend of document.querySelectorAll(".legend")) {
  const buttons = [...legend.querySelectorAll("button")], shown = button => button.getAttribute("aria-pressed") === "true";
  const hide = async which => {
    const away = buttons.filter(which), hidden = away.map(b => b.dataset.value), colours = away.map(b => b.dataset.colour);
    await drawn;
    for (const place of legend.closest("figure").querySelectorAll(".chart")) {
      views.get(place)?.signal("hidden", hidden).run();
      for (const mark of place.classList.contains("still") ? place.querySelectorAll("[class*=mark-] path") : [])
        mark.classList.toggle("away", colours.includes(mark.getAttribute("stroke")) || colours.includes(mark.getAttribute("fill")));
    }
  };
  const chosen = () => hide(button => !shown(button));
  for (const button of buttons) {
    button.addEventListener("click", () => { button.setAttribute("aria-pressed", !shown(button)); chosen(); });
    button.addEventListener("mouseenter", () => { if (shown(button)) hide(other => other !== button); });  // this line alone
    button.addEventListener("mouseleave", chosen);
  }
}

const said = document.createElement("div");  // what a mark of a still picture tells, as it tells those who do not see it
said.className = "said"; said.hidden = true; document.body.append(said);
const short = value => /^-?[0-9.]{8,}$/.test(value) ? String(Number(Number(value).toPrecision(3))) : value;
for (const place of document.querySelectorAll(".chart.still")) {
  place.addEventListener("mousemove", event => {
    const mark = event.target.closest("path[aria-label]");
    said.hidden = !mark; if (!mark) return;
    const rows = mark.getAttribute("aria-label").split("; ").map(row => row.replace(",,", ",").split(/: (?=[^:]*$)/));
    said.replaceChildren(...rows.map(([name, value]) => { const row = document.createElement("div"); row.textContent = `${name}: ${short(value)}`; return row; }));
    const {offsetWidth: wide, offsetHeight: high} = said;
    said.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - wide - 8))}px`;
    said.style.top = `${event.clientY + 16 + high > innerHeight ? event.clientY - high - 8 : event.clientY + 16}px`;
  });
  place.addEventListener("mouseleave", () => { said.hidden = true; });
}

function sortKey(cell) {
  const text = cell.textContent.replace(/,/g, "").replace("−", "-"), share = text.match(/^(-?[\d.]+)\/([\d.]+)$/);
  const number = share ? share[1] / share[2] : parseFloat(text);
  return Number.isNaN(number) ? cell.textContent : number;
}
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
    const head = button.parentElement, up = head.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...body.rows].map(row => [sortKey(row.cells[column]), row]);
    rows.sort(([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1) * (up ? 1 : -1));
    body.append(...rows.map(([, row]) => row));
  }));
  const filter = table.closest("details")?.querySelector(".filter input");
  filter?.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) row.hidden = !wanted.every(word => row.textContent.toLowerCase().includes(word));
  });
}

document.getElementById("download")?.addEventListener("click", () => {
  const data = document.getElementById("data"), link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.parse(data.textContent)], {type: "text/csv"}));
  link.download = data.dataset.name;
  link.click();
});

function openAddressed() {  // a link into a folded part unfolds it
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}
window.addEventListener("hashchange", openAddressed);
openAddressed();
const unfolded = [], narrowed = [];
const onPaper = count => count === 1 ? 640 : count > 6 ? 215 : 320;  // a wide figure made small would have small words
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach(each => { each.open = true; unfolded.push(each); });
  for (const [place, view] of views) {
    const width = onPaper(Number(place.closest(".panels").dataset.count));
    if (charts[place.id].width !== "container" || view.width() <= width) continue;
    narrowed.push([view, view.width()]);
    view.width(width).run();
  }
});
window.addEventListener("afterprint", () => {
  unfolded.splice(0).forEach(each => { each.open = false; });
  narrowed.splice(0).forEach(([view, width]) => view.width(width).run());
});
