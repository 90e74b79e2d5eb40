(() => {  // names of its own: the library of the figures has some, too
const heads = JSON.parse(document.getElementById("head-data").textContent);
const cells = [...document.querySelectorAll(".grid button")], pinned = document.getElementById("pinned");
const measure = document.getElementById("measure");
const show = () => {
  const shown = heads.measures[measure.value];
  document.getElementById("scale").textContent = shown.logarithmic ? "logarithmic" : "";
  [document.getElementById("least").textContent, document.getElementById("most").textContent] = shown.ends;
  for (const cell of cells) {
    const i = cell.dataset.index, shade = shown.shades[i];
    cell.style.setProperty("--shade", shade); cell.textContent = shown.texts[i];
    cell.classList.toggle("mid", shade > .57); cell.classList.toggle("deep", shade > .8);
    cell.title = `${cell.getAttribute("aria-label")}: ${shown.texts[i]}`;
  }
};
measure.addEventListener("change", show); show();
const W = 340, H = 165, LEFT = 48, TOP = 12, FOOT = 40, ROOM = 30;  // of a small figure; ROOM is for a number of three digits
const picture = (title, inside) => `<figure class="small-figure"><svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${title}">${inside}<line x1="${LEFT}" y1="${H - FOOT}" x2="${W - 8}" y2="${H - FOOT}" class="axis"/></svg><figcaption>${title}</figcaption></figure>`;
const word = (x, y, text, anchor) => `<text x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`;
function apart(points, place) {  // those whose numbers have room below the axis; the last always has
  const last = points[points.length - 1], kept = [];
  for (const p of points) {
    const x = place(p)[0], before = kept.length ? place(kept[kept.length - 1])[0] : -ROOM;
    if (p === last || x - before >= ROOM && place(last)[0] - x >= ROOM) kept.push(p);
  }
  return kept;
}
function curve(points) {  // change of the output over the dimensions kept
  if (!points || points.length < 2) return "";
  const top = Math.max(...points.map(p => p[1])) || 1, least = points[0][0], wide = points[points.length - 1][0] / least;
  const place = ([x, y]) => [LEFT + 10 + (W - LEFT - 30) * Math.log(x / least) / Math.log(wide), TOP + (H - TOP - FOOT) * (1 - y / top)];
  const dots = points.map(p => { const [x, y] = place(p); return `<circle cx="${x}" cy="${y}" r="4"><title>${p[0]} dimensions: ${(100 * p[1]).toFixed(1)} %</title></circle>`; });
  return picture("Change of its output, by query–key dimensions kept", `<polyline points="${points.map(p => place(p).join(",")).join(" ")}"/>${dots.join("")}` +
    word(LEFT - 4, TOP + 8, `${(100 * top).toPrecision(2)} %`, "end") + word(LEFT - 4, H - FOOT, "0 %", "end") + apart(points, place).map(p => word(place(p)[0], H - FOOT + 16, p[0], "middle")).join("")).replace('class="small-figure"', 'class="small-figure curve"');
}
function bars(title, values, labels, log) {
  if (!values?.length) return "";
  const least = 1e-4, size = v => log ? Math.max(0, 1 - Math.log(Math.max(v, least)) / Math.log(least)) : v / (Math.max(...values) || 1);
  const step = (W - LEFT - 8) / values.length, every = Math.ceil(values.length / 8);
  const drawn = values.map((v, i) => { const h = size(v) * (H - TOP - FOOT); return `<rect x="${LEFT + i * step + step * .08}" y="${H - FOOT - h}" width="${step * .84}" height="${h}"><title>${labels[i]}: ${log ? v.toPrecision(2) : (100 * v).toFixed(1) + " %"}</title></rect>` + (i % every === 0 ? word(LEFT + (i + .5) * step, H - FOOT + 16, String(labels[i]).split("–")[0], "middle") : ""); });
  return picture(title, drawn.join("") + word(LEFT - 4, TOP + 8, log ? "1" : `${(100 * Math.max(...values)).toFixed(0)} %`, "end") + word(LEFT - 4, H - FOOT, log ? "10⁻⁴" : "0 %", "end"));
}
const unpacked = new Map();  // attention weights, 0 to 255, by text and layer
function attention(text, layer) {
  const key = `${text} ${layer}`, packed = heads.texts[text].weights[layer];
  if (packed && !unpacked.has(key)) unpacked.set(key, Uint8Array.from(atob(packed), c => c.charCodeAt(0)));
  return unpacked.get(key);
}
function texts(head, add) {
  heads.texts.forEach((text, number) => {
    const weights = attention(number, head.layer), size = text.tokens.length;
    if (!weights) return;
    const box = add("div", ""); box.className = "tokens"; box.setAttribute("role", "group"); box.setAttribute("aria-label", `Text ${number + 1}`);
    const said = add("p", ""); said.className = "small";
    const spans = text.tokens.map(token => { const b = add("button", token, box); b.type = "button"; return b; });
    const look = at => {
      const row = weights.subarray((head.head * size + at) * size, (head.head * size + at + 1) * size);
      spans.forEach((span, j) => { const share = row[j] / 255; span.style.setProperty("--shade", share); span.classList.toggle("mid", share > .57); span.classList.toggle("deep", share > .8); span.title = `${Math.round(100 * share)} %`; span.toggleAttribute("data-from", j === at); });
      const most = row.indexOf(Math.max(...row));
      said.textContent = `“${text.tokens[at]}” attends most to “${text.tokens[most]}”${most === at ? " (itself)" : ""}: ${Math.round(row[most] / 2.55)} %.`;
    };
    spans.forEach((span, at) => ["mouseenter", "focus", "click"].forEach(kind => span.addEventListener(kind, () => look(at))));
    look(size - 1);
  });
}
function pin(name) {
  const cell = document.getElementById(name); if (!cell?.dataset.index) return;
  const head = heads.heads[cell.dataset.index];
  cells.forEach(each => each.removeAttribute("aria-current")); cell.setAttribute("aria-current", "true");
  pinned.replaceChildren();
  const add = (tag, text, parent = pinned) => { const e = document.createElement(tag); e.textContent = text; parent.append(e); return e; };
  add("h3", `Layer ${head.layer}, head ${head.head}`);
  if (head.twin !== null) { const p = add("p", "Its twin, the head whose output is most like its own: "); const a = add("a", `layer ${head.layer}, head ${head.twin}`, p); a.href = `#L${head.layer}H${head.twin}`; a.className = "twin"; }
  const figures = add("div", ""); figures.className = "small-figures";
  const spectrum = heads.spectra[name], reach = heads.reach[name];
  figures.innerHTML = curve(heads.curves[name]) + bars("Spectrum of its query–key form, relative to the largest", spectrum, spectrum?.map((_, i) => i + 1), true) + bars("Share of its attention, by distance in tokens; a bar begins at its number", reach, heads.distances, false);
  if (heads.texts.some((text, number) => attention(number, head.layer))) { add("h4", "Attention on texts: point at a token to see where it looks"); texts(head, add); }
  const list = add("dl", "");
  for (const [title, value] of Object.entries(head.numbers)) { add("dt", title, list); add("dd", value, list); }
  pinned.hidden = false;
}
cells.forEach(cell => cell.addEventListener("click", () => { history.replaceState(null, "", "#" + cell.id); pin(cell.id); }));
const shades = Object.values(heads.measures)[0].shades;
const follow = () => pin(/^#L\d+H\d+$/.test(location.hash) ? location.hash.slice(1) : cells.find(cell => cell.dataset.index == shades.indexOf(Math.max(...shades)))?.id);
window.addEventListener("hashchange", follow); follow();
})();
