import { card, details, html, table, timeOf, type Html } from '../../extension.js';
import type { CallCount } from './calls.repository.js';

/** Outcomes of a bar, from the bottom; the last group has all others. */
const GROUPS = [
  { look: 'ok', label: 'OK', outcomes: ['ok'] },
  { look: 'wait', label: 'Denied or canceled', outcomes: ['denied', 'canceled', 'unknown'] },
  { look: 'bad', label: 'Failed', outcomes: [] },
] as const;

const BAR = 0.72;

/** @param partMs length of a part, an hour or a day */
export function callsPlot(counts: CallCount[], from: Date, partMs: number): Html {
  const first = Math.floor(from.getTime() / partMs) * partMs;
  const size = Math.floor(Date.now() / partMs) - first / partMs + 1;
  const parts = Array.from({ length: size }, (_, at) => ({ start: first + at * partMs, calls: GROUPS.map(() => 0) }));
  for (const { start, outcome, calls } of counts) {
    const group = GROUPS.findIndex(({ outcomes }) => (outcomes as readonly string[]).includes(outcome));
    const part = parts[(start - first) / partMs];
    if (part) part.calls[group < 0 ? GROUPS.length - 1 : group] += calls;
  }
  const totalOf = (calls: number[]) => calls.reduce((sum, value) => sum + value, 0);
  const sums = GROUPS.map((_, group) => totalOf(parts.map(({ calls }) => calls[group])));
  const peak = parts.reduce((most, part) => (totalOf(part.calls) > totalOf(most.calls) ? part : most));
  const most = Math.max(1, totalOf(peak.calls));
  const bars = parts.flatMap(({ calls }, at) => {
    let top = 100;
    return calls.map((value, group) => {
      const height = (value / most) * 92;
      top -= height;
      return (
        value > 0 &&
        html`<rect class="${GROUPS[group].look}" x="${((at * 100) / size).toFixed(2)}" y="${top.toFixed(2)}" width="${((BAR * 100) / size).toFixed(2)}" height="${height.toFixed(2)}"/>`
      );
    });
  });
  const unit = partMs === 3_600_000 ? 'hour' : 'day';
  const key = GROUPS.map(
    ({ look, label }, group) =>
      html`<span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${look}" width="10" height="10" rx="2"/></svg>${label} ${sums[group]}</span>`,
  );
  const peakTime = timeOf(new Date(peak.start).toISOString());
  const label = `Calls per ${unit}: ${GROUPS.map(({ label: name }, group) => `${name} ${sums[group]}`).join(', ')}; at most ${most} in one ${unit}`;
  const headings = [
    [unit === 'hour' ? 'Hour' : 'Day'],
    ...GROUPS.map((group) => [group.label, 'num'] as const),
  ] as const;
  const rows = parts
    .filter(({ calls }) => totalOf(calls) > 0)
    .map(({ start, calls }) => [timeOf(new Date(start).toISOString()), ...calls]);
  const plot = card(
    'plot',
    `Calls per ${unit}`,
    html`<p class="key">${key}<span>Peak ${most}, ${peakTime}</span></p>
<figure role="img" aria-label="${label}"><svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="M0 33h100M0 66h100M0 100h100"/>${bars}</svg><div class="axis" aria-hidden="true"><span>${timeOf(from.toISOString())}</span><span>now</span></div></figure>
${details('Show as a table', table(`Calls per ${unit} by outcome`, headings, rows))}`,
    { count: totalOf(sums) },
  );
  return html`<div class="plot">${plot}</div>`;
}
