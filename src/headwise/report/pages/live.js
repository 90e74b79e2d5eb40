// The page is written anew while the work goes on: read it again, and stay where the reader was.
const state = sessionStorage.getItem("headwise-place");
if (state) { const [y, open] = JSON.parse(state); document.querySelectorAll("details").forEach((each, i) => { each.open = open.includes(i); }); scrollTo(0, y); }
setTimeout(() => {
  const open = [...document.querySelectorAll("details")].map((each, i) => each.open ? i : -1).filter(i => i >= 0);
  sessionStorage.setItem("headwise-place", JSON.stringify([scrollY, open]));
  location.reload();
}, 5000);
