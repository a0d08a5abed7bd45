/* global document, navigator, addEventListener, location, history, Option, DOMParser, EventSource */
// Copies, closes menus and filters while typing. Every page works without it.
let shown = document.getElementById('main')?.innerHTML;
const showCopy = (part) => {
  for (const button of part.querySelectorAll('[data-copy]')) button.hidden = !navigator.clipboard;
};
showCopy(document);
addEventListener('click', async ({ target: button }) => {
  if (!button.dataset.copy) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy'), 2000);
});
const closeMenus = (except) => {
  for (const menu of document.querySelectorAll('.menu[open], .pop[open]')) if (menu !== except) menu.open = false;
};
addEventListener('click', ({ target }) => closeMenus(target.closest('.menu, .pop')));
addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') closeMenus();
});
for (const input of document.querySelectorAll('[data-filter]')) {
  const rows = document.querySelectorAll(`#${input.dataset.filter} > *`);
  input.addEventListener('input', () => {
    const text = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
  });
}
// A notice is shown once: a reload or a bookmark does not show it again.
const { pathname, search, hash } = location;
const query = search.replace(/([?&])(?:done|saved)(?:=[^&]*)?(?:&|$)/, '$1').replace(/[?&]$/, '');
if (query !== search) history.replaceState(null, '', pathname + query + hash);
for (const list of document.querySelectorAll('#zones')) {
  list.append(...Intl.supportedValuesOf('timeZone').map((zone) => new Option(zone)));
}
// Reads a page that changes again: at each event of its stream, or every 2 s.
const live = document.querySelector('[data-live]');
const stream = live?.dataset.live ? new EventSource(live.dataset.live) : null;
const isStreamed = () => stream !== null && stream.readyState !== EventSource.CLOSED;
let isReading = false;
let isDue = false;
async function follow() {
  isDue = true;
  if (isReading) return;
  isReading = true;
  while (isDue) {
    isDue = false;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok || answer.redirected) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const main = next.getElementById('main');
    if (main.innerHTML !== shown) {
      shown = main.innerHTML;
      showCopy(main);
      document.getElementById('main').replaceWith(main);
    }
    document.title = next.title;
    if ('live' in main.dataset && !isStreamed()) setTimeout(follow, 2000);
  }
  isReading = false;
}
if (live && !stream) setTimeout(follow, 2000);
if (stream) {
  stream.onmessage = follow;
  stream.onerror = () => isStreamed() || setTimeout(follow, 2000);
}
