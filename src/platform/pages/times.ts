import { Html, html } from './html.js';

/** A moment for people: the hour of today, or the date with it, with the name of the zone. @param iso ISO 8601 */
export function timeOf(iso: string, now = new Date()): Html {
  const at = new Date(iso);
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options }).format(at);
  const hour = format({ hour: '2-digit', minute: '2-digit' });
  const isToday = at.toISOString().slice(0, 10) === now.toISOString().slice(0, 10);
  const day = isToday ? '' : `${format({ day: 'numeric', month: 'short', year: 'numeric' })}, `;
  return html`<time datetime="${at.toISOString()}">${day}${hour} UTC</time>`;
}
