// Theorem 2(2) of arXiv 2510.06662, as headwise.theory.head_count.lower_bound_exponent has it.
function exponent(heads, dim, length, headDim, fraction) {
  return (fraction * length - heads - dim + 1) / ((headDim + 1) * heads + 1) - 1;
}
function lowerBound(heads, dim, length, headDim, fraction) {
  if (heads >= dim) return {verdict: "not applicable", value: null};
  const k = exponent(heads, dim, length, headDim, fraction);
  return k > 1e-12 ? {verdict: "holds", value: k} : {verdict: "vacuous", value: null};
}
if (typeof document !== "undefined" && document.getElementById("calculator")) {
  const field = name => document.getElementById("slider-" + name);
  const value = name => { const slider = field(name); return slider.dataset.powers ? 2 ** slider.value : Number(slider.value); };
  const say = k => k === null ? "" : k.toFixed(2);
  function renew() {
    const [dim, length, heads, headDim] = ["dim", "length", "heads", "width"].map(value), digits = value("digits");
    for (const name of ["dim", "length", "heads", "width", "digits"]) field(name).nextElementSibling.textContent = value(name);
    const found = lowerBound(heads, dim, length, headDim, 0.25), answer = document.getElementById("answer");
    answer.textContent = found.verdict === "not applicable" ? `${heads} heads are enough for ${dim} features: a small network exists (theorem 2(1)).`
      : found.verdict === "vacuous" ? `With ${heads} of ${dim} heads the bound says nothing at length ${length}: it needs longer sequences.`
      : `With ${heads} of ${dim} heads, parameters grow at least like 1/error^${say(found.value)}: ${digits} more digits of accuracy multiply them by 10^${(digits * found.value).toFixed(1)}, constants aside.`;
    const body = document.getElementById("phase"); body.replaceChildren();
    const top = Math.max(1, ...[...Array(9).keys()].map(i => lowerBound(1, dim, 2 ** (i + 3), headDim, 0.25).value ?? 0));
    for (let h = 8; h >= 1; h--) {
      const row = body.insertRow(), head = document.createElement("th"); head.scope = "row"; head.textContent = `${h} heads`; row.append(head);
      for (let i = 3; i <= 11; i++) {
        const at = lowerBound(h, dim, 2 ** i, headDim, 0.25), cell = row.insertCell();
        const shade = at.value === null ? 0 : Math.min(1, Math.log1p(at.value) / Math.log1p(top));
        cell.className = "cell" + (shade > .57 ? " mid" : "") + (shade > .8 ? " deep" : ""); cell.style.setProperty("--shade", shade);
        cell.textContent = at.value !== null ? say(at.value) : at.verdict === "vacuous" ? "–" : "enough";
        if (h === heads && 2 ** i === length) cell.setAttribute("aria-current", "true");
      }
    }
  }
  document.querySelectorAll("#calculator input").forEach(each => each.addEventListener("input", renew));
  renew();
}
