const heads = JSON.parse(document.getElementById("head-data").textContent);
const cells = [...document.querySelectorAll(".grid button")], pinned = document.getElementById("pinned");
const address = head => `L${head.layer}H${head.head}`;
document.getElementById("measure").addEventListener("change", event => {
  const shown = heads.measures[event.target.value];
  document.getElementById("scale").textContent = shown.logarithmic ? "logarithmic shades" : "";
  for (const cell of cells) {
    const i = cell.dataset.index, shade = shown.shades[i];
    cell.style.setProperty("--shade", shade); cell.textContent = shown.texts[i];
    cell.classList.toggle("mid", shade > .57); cell.classList.toggle("deep", shade > .8);
  }
});
function curve(points) {  // change of the output over the dimensions kept
  if (!points || points.length < 2) return "";
  const w = 320, h = 150, top = Math.max(...points.map(p => p[1])) || 1, wide = points[points.length - 1][0];
  const place = ([x, y]) => [44 + (w - 60) * x / wide, 12 + (h - 46) * (1 - y / top)];
  const dots = points.map(p => { const [x, y] = place(p); return `<circle cx="${x}" cy="${y}" r="4"><title>${p[0]} dimensions: ${(100 * p[1]).toFixed(1)} %</title></circle>`; });
  return `<svg class="curve" viewBox="0 0 ${w} ${h}" role="img" aria-label="Change of the output over the dimensions kept"><polyline points="${points.map(p => place(p).join(",")).join(" ")}"/>${dots.join("")}<text x="40" y="20" text-anchor="end">${(100 * top).toFixed(0)} %</text><text x="40" y="${h - 32}" text-anchor="end">0 %</text><text x="${w - 16}" y="${h - 16}" text-anchor="end">${wide}</text><text x="${w / 2}" y="${h - 2}" text-anchor="middle">query–key dimensions kept</text></svg>`;
}
function pin(name) {
  const cell = document.getElementById(name); if (!cell?.dataset.index) return;
  const head = heads.heads[cell.dataset.index];
  cells.forEach(each => each.removeAttribute("aria-current")); cell.setAttribute("aria-current", "true");
  pinned.replaceChildren();
  const add = (tag, text, parent = pinned) => { const e = document.createElement(tag); e.textContent = text; parent.append(e); return e; };
  add("h3", `Layer ${head.layer}, head ${head.head}`);
  pinned.insertAdjacentHTML("beforeend", curve(heads.curves[name]));
  const list = add("dl", "");
  for (const [title, value] of Object.entries(head.numbers)) { add("dt", title, list); add("dd", value, list); }
  if (head.twin !== null) { const p = add("p", "Its twin, the head whose output is most like its own: "); const a = add("a", `layer ${head.layer}, head ${head.twin}`, p); a.href = `#L${head.layer}H${head.twin}`; }
  pinned.hidden = false;
}
cells.forEach(cell => cell.addEventListener("click", () => { history.replaceState(null, "", "#" + cell.id); pin(cell.id); }));
const follow = () => pin(location.hash.slice(1));
window.addEventListener("hashchange", follow); follow();
