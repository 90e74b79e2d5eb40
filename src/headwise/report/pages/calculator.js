// Theorem 2(2) of arXiv 2510.06662, as headwise.theory.head_count.lower_bound_exponent has it.
function exponent(heads, dim, length, headDim, fraction) {
  return (fraction * length - heads - dim + 1) / ((headDim + 1) * heads + 1) - 1;
}
function lowerBound(heads, dim, length, headDim, fraction) {
  if (heads >= dim) return {verdict: "not applicable", value: null};
  const k = exponent(heads, dim, length, headDim, fraction);
  return k > 1e-12 ? {verdict: "holds", value: k} : {verdict: "vacuous", value: null};
}
// The harmonic dimension count, as headwise.theory.rank.error_lower_bound has it, with its degrees
// up to 399 and arbitrary value–output matrices: ½ Σ over odd ℓ of η² · max(0, 1 − heads·D/N).
const rankTerms = new Map();  // by dimension and rank: [η², log D/N] of each odd degree
function rankCurve(dim, rank, highest = 399) {
  const key = `${dim} ${rank}`; if (rankTerms.has(key)) return rankTerms.get(key);
  const logN = [0, Math.log(dim)], logD = [0];
  for (let l = 1; l < highest; l++) logN.push(logN[l] + Math.log((2 * l + dim) / (2 * l + dim - 2)) + Math.log((l + dim - 2) / (l + 1)));
  for (let l = 1; l <= highest + 2; l++) logD.push(logD[l - 1] + Math.log((rank + l - 1) / l));
  let first = dim % 2 ? 0 : Math.log(2 / Math.PI);  // log Γ(d/2)/(√π Γ((d+1)/2)): 1 at d = 1, 2/π at d = 2
  for (let d = dim % 2 ? 1 : 2; d < dim; d += 2) first += Math.log(d / (d + 1));
  const sum = (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))), terms = [];
  for (let l = 1, eigenvalue = first; l <= highest; l += 2) {
    const below = l >= 2 ? sum(logD[l - 2], logD[l + 2]) : logD[l + 2];
    terms.push([Math.exp(2 * eigenvalue + logN[l]), sum(logD[l], below) - logN[l]]);
    eigenvalue += Math.log(l / (l + dim));
  }
  rankTerms.set(key, terms); return terms;
}
function rankBound(dim, rank, heads) {
  if (rank >= dim) return {verdict: "not applicable", value: null};
  let total = 0;
  for (const [mass, share] of rankCurve(dim, rank)) total += mass * -Math.expm1(Math.min(0, Math.log(heads) + share)) / 2;
  return total > 1e-12 ? {verdict: "holds", value: total} : {verdict: "vacuous", value: null};
}
function headsNeeded(dim, rank, error) {  // the fewest that the bound does not rule out; it falls with heads
  const below = heads => (rankBound(dim, rank, heads).value ?? 0) <= error;
  let low = 1, high = 1;
  while (!below(high)) { low = high; high *= 2; if (high > 1e300) return Infinity; }
  while (high - low > Math.max(1, 1e-12 * high)) { const middle = Math.floor((low + high) / 2); if (below(middle)) high = middle; else low = middle; }
  return high;
}
if (typeof document !== "undefined" && document.getElementById("calculator")) (() => {
  const field = name => document.getElementById("slider-" + name), down = (v, digits) => Math.floor(v * 10 ** digits + 1e-9) / 10 ** digits, say = k => k >= 100 ? down(k, 0) : down(k, 2).toFixed(2);  // what is printed is still a bound
  const value = name => { const slider = field(name); return slider.dataset.powers ? Number(slider.dataset.powers) ** slider.value : Number(slider.value); };
  const raise = (place, text) => place.replaceChildren(...text.split(/\^(\d+(?:\.\d+)?)/).map((part, i) => i % 2 ? Object.assign(document.createElement("sup"), {textContent: part}) : part));
  const raised = n => String(n).replace("-", "⁻").replace(/\d/g, d => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  const show = names => names.forEach(name => { const slider = field(name), text = slider.dataset.powers === "10" ? "10" + raised(slider.value) : value(name); slider.parentElement.querySelector("output").textContent = text; slider.setAttribute("aria-valuetext", text); });
  function renewHeads() {
    show(["dim", "length", "heads", "width", "digits"]);
    const [dim, length, heads, headDim] = ["dim", "length", "heads", "width"].map(value), digits = -Number(field("digits").value);
    const found = lowerBound(heads, dim, length, headDim, 0.25), many = heads === 1 ? "1 head" : `${heads} heads`;
    raise(document.getElementById("answer"), found.verdict === "not applicable" ? `${many} for ${dim} features: enough${headDim >= 2 ? ", a small network exists (theorem 2(1))" : "; theorem 2(1) promises a small network from 2 dimensions a head on, not at 1"}.`
      : found.verdict === "vacuous" ? `With ${many} for ${dim} features the bound says nothing at length ${length}: it needs longer sequences.`
      : `With ${many} for ${dim} features, parameters grow at least like 1/error^${say(found.value)}: an error of 10${raised(-digits)} instead of 1 multiplies them by 10^${down(digits * found.value, 1).toFixed(1)}, constants aside.`);
    const body = document.getElementById("phase"); body.replaceChildren();
    const top = Math.max(1, ...[...Array(9).keys()].map(i => lowerBound(1, dim, 2 ** (i + 3), headDim, 0.25).value ?? 0));
    for (let h = 8; h >= 1; h--) {
      const row = body.insertRow(), head = document.createElement("th"); head.scope = "row"; head.textContent = h; row.append(head);
      for (let i = 3; i <= 11; i++) {
        const at = lowerBound(h, dim, 2 ** i, headDim, 0.25), cell = row.insertCell();
        const shade = at.value === null ? 0 : Math.min(1, Math.log1p(at.value) / Math.log1p(top));
        cell.className = "cell" + (shade > .57 ? " mid" : "") + (shade > .8 ? " deep" : "") + (at.verdict === "vacuous" ? " silent" : at.value === null ? " enough" : ""); cell.style.setProperty("--shade", shade);
        cell.textContent = at.value !== null ? say(at.value) : at.verdict === "vacuous" ? "–" : "✓";
        cell.title = `${h === 1 ? "1 head" : h + " heads"}, T = ${2 ** i}: ${at.value !== null ? "k ≥ " + say(at.value) : at.verdict === "vacuous" ? "the bound is vacuous" : "enough heads"}`;
        cell.addEventListener("click", () => { field("heads").value = h; field("length").value = i; renewHeads(); });
        if (h === heads && 2 ** i === length) cell.setAttribute("aria-current", "true");
      }
    }
  }
  function renewRank() {
    field("rank").max = value("points"); show(["points", "rank", "many", "error"]);
    const [dim, rank, heads, error] = ["points", "rank", "many", "error"].map(value), found = rankBound(dim, rank, heads);
    const needed = rank < dim ? headsNeeded(dim, rank, error) : 1;
    const count = needed > 1e6 ? `10${raised(Math.floor(Math.log10(needed)))}` : needed.toLocaleString("en");
    document.getElementById("rank-answer").textContent = rank >= dim ? `One head of full rank ${dim} finds the nearer point exactly.`
      : (found.value === null ? `The bound forbids ${heads} heads of rank ${rank} nothing: it is vacuous.` : `No layer of ${heads === 1 ? "1 head" : heads + " heads"} of rank ${rank} has a mean-square error below ${down(found.value, 4)}.`)
      + (needed > 1 ? ` An error of ${say(error)} takes at least ${count} heads; one head of full rank ${dim} reaches 0.` : ` The bound does not rule out one head at an error of ${say(error)}.`);
    const place = document.getElementById("rank-curve"), w = Math.max(280, place.clientWidth), h = Math.min(320, 130 + w / 3), left = 58,  // drawn at its size: letters keep theirs
       foot = 46, top = 0.55, x = p => left + (w - left - 70) * p / 16, y = v => 14 + (h - 14 - foot) * (1 - v / top);
    const powers = [...Array(33).keys()].map(i => i / 2), ranks = [...new Set([1, 2, 4, 8, 16, 32, 64].filter(r => r < dim).concat(rank < dim ? [rank] : []))].sort((a, b) => a - b);
    const line = r => powers.map(p => `${x(p).toFixed(1)},${y(rankBound(dim, r, 2 ** p).value ?? 0).toFixed(1)}`).join(" ");
    const ends = ranks.map(r => [r, y(rankBound(dim, r, 2 ** 16).value ?? 0)]).reverse(); for (let i = 1; i < ends.length; i++) ends[i][1] = Math.min(ends[i][1], ends[i - 1][1] - 15);
    place.innerHTML = `<svg viewBox="0 0 ${w} ${h}" role="img" aria-label="Least error by heads, a line a rank">` +
      [0, .1, .2, .3, .4, .5].map(v => `<line class="axis" opacity=".35" x1="${left}" x2="${w - 70}" y1="${y(v)}" y2="${y(v)}"/><text x="${left - 6}" y="${y(v) + 5}" text-anchor="end">${v}</text>`).join("") +
      [0, 4, 8, 12, 16].map(p => `<text x="${x(p)}" y="${h - foot + 18}" text-anchor="middle">${(2 ** p).toLocaleString("en")}</text>`).join("") +
      ranks.map(r => `<polyline points="${line(r)}" class="${r === rank ? "" : "faint"}"/>`).join("") + ends.map(([r, at]) => `<text x="${w - 64}" y="${at + 5}" ${r === rank ? 'font-weight="700"' : ""}>rank ${r}</text>`).join("") +
      (found.value === null ? "" : `<circle class="here" cx="${x(Math.log2(heads))}" cy="${y(found.value)}" r="7"><title>${heads} heads: ${down(found.value, 4)}</title></circle>`) +
      `<text x="${(w - 70 + left) / 2}" y="${h - 6}" text-anchor="middle">heads</text><text transform="translate(16 ${(h - foot) / 2 + 7}) rotate(-90)" text-anchor="middle">least mean-square error</text></svg>`;
  }
  document.querySelectorAll("#calculator input").forEach(each => each.addEventListener("input", renewHeads));
  document.querySelectorAll("#rank-calculator input").forEach(each => each.addEventListener("input", renewRank));
  const fitted = width => { document.getElementById("rank-curve").style.width = width; renewRank(); };
  window.addEventListener("resize", renewRank);
  window.addEventListener("beforeprint", () => fitted("640px"));
  window.addEventListener("afterprint", () => fitted(""));
  renewHeads(); renewRank();
})();
