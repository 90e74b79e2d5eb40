(() => {
const place = document.getElementById("size-data"); if (!place) return;
const sizes = JSON.parse(place.textContent), slider = document.getElementById("size");
const number = v => v === null ? "" : v.toPrecision(3);
function bars(title, values, whole) {
  const w = 340, h = 170, left = 40, foot = 36, step = (w - left - 8) / values.length, every = Math.ceil(values.length / 12), tall = h - 14 - foot;
  const drawn = values.map((v, i) => { const x = left + i * step, high = tall * v / whole; return `<rect class="before" x="${x + step * .06}" y="${h - foot - tall}" width="${step * .88}" height="${tall}"/><rect x="${x + step * .2}" y="${h - foot - high}" width="${step * .6}" height="${high}"><title>layer ${i}: ${v} of ${whole}</title></rect>` + (i % every ? "" : `<text x="${x + step / 2}" y="${h - foot + 16}" text-anchor="middle">${i}</text>`); });
  return `<figure class="small-figure"><svg viewBox="0 0 ${w} ${h}" role="img" aria-label="${title} by layer">${drawn.join("")}<text x="${left - 4}" y="22" text-anchor="end">${whole}</text><text x="${left - 4}" y="${h - foot}" text-anchor="end">0</text><text x="${(w + left) / 2}" y="${h - 4}" text-anchor="middle">layer</text></svg><figcaption>${title}</figcaption></figure>`;
}
function renew() {
  const point = sizes.points[slider.value], known = point.damage !== null;
  const spread = known && point.low !== null ? ` [${number(point.low)}, ${number(point.high)}]` : "";
  slider.setAttribute("aria-valuetext", `${Math.round(100 * point.kept)} %`);
  document.getElementById("size-says").innerHTML = `<strong>${Math.round(100 * point.kept)} % kept</strong>: damage ` + (known ? `${number(point.damage)}${spread} measured` + (point.predicted !== null ? `, ${number(point.predicted)} predicted` : "") : point.predicted !== null ? `${number(point.predicted)} predicted, not measured` : "not known") + `, ${sizes.unit}.`;
  document.getElementById("size-bars").innerHTML = bars("Parameters of the layer, %", point.layers.map(l => l.share), 100) + bars("Heads", point.layers.map(l => l.heads), sizes.heads) + bars("Query–key dimensions a head, mean", point.layers.map(l => l.qk), sizes.dim) + bars("Value dimensions a head, mean", point.layers.map(l => l.v), sizes.dim);
}
slider.addEventListener("input", renew); renew();
})();
