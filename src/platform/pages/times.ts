import { Html, html } from './html.js';

/**
 * Renders a moment for people: the hour of today, or the date with it, with the name of the zone. In a page with the frame, the zone of the
 * account replaces UTC ({@link timesIn}).
 *
 * @param iso ISO 8601
 * @param timeZone a name of the IANA database
 */
export function timeOf(iso: string, now = new Date(), timeZone = 'UTC'): Html {
  const at = new Date(iso);
  const format = (time: Date, options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { timeZone, ...options }).format(time);
  const dayOf = (time: Date) => format(time, { day: 'numeric', month: 'short', year: 'numeric' });
  const hour = format(at, { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' });
  const day = dayOf(at) === dayOf(now) ? '' : `${dayOf(at)}, `;
  return html`<time datetime="${at.toISOString()}">${day}${hour}</time>`;
}

export function timesIn(timeZone: string, page: string): string {
  return page.replace(/<time datetime="([^"]+)">[^<]*<\/time>/g, (_, iso: string) =>
    String(timeOf(iso, undefined, timeZone)),
  );
}
