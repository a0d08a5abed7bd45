import type { FoundCall } from './calls.repository.js';

const HEADINGS = [
  'time',
  'account',
  'credential',
  'client',
  'target',
  'kind',
  'method',
  'tool',
  'outcome',
  'durationMs',
  'id',
];

/** Spreadsheets treat a cell that starts with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Returns calls as CSV (RFC 4180). A cell that spreadsheets would run as a formula gets a leading apostrophe. */
export function callsCsv(calls: readonly FoundCall[]): string {
  const rows = calls.map((call) => [
    call.at.toISOString(),
    call.accountName,
    call.credentialName,
    call.client,
    call.target,
    call.kind,
    call.method,
    call.tool,
    call.outcome,
    String(call.durationMs),
    call.id,
  ]);
  return [HEADINGS, ...rows].map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');
}

function cellOf(value: string | null): string {
  const text = value ?? '';
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
