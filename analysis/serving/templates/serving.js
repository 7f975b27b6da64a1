"use strict";
// Each piece of the page asks for itself again, and changes only if it has changed.
const gone = new Set();

function say(name, lost) {
  lost ? gone.add(name) : gone.delete(name);
  let note = document.getElementById("gone");
  if (!gone.size) { note?.remove(); return; }
  if (note) return;
  note = document.createElement("p");
  note.id = "gone";
  note.className = "status gone";
  note.setAttribute("role", "alert");
  note.textContent = "stalesim serve does not answer: was it ended? What is below is as it was last.";
  document.querySelector("header").append(note);
}

async function follow(place) {
  const name = place.dataset.piece;
  let known = null;
  for (;;) {
    if (!document.hidden) {
      try {
        const answer = await fetch(`pieces/${name}`, { cache: "no-cache" });
        if (!answer.ok) throw new Error(answer.statusText);
        const text = await answer.text();
        if (text !== known) { place.innerHTML = text; known = text; }
        say(name, false);
      } catch { say(name, true); }
    }
    await new Promise((resume) => setTimeout(resume, 1000 * place.dataset.every));
  }
}

document.querySelectorAll("[data-piece]").forEach(follow);
