/** Limits of the events that a stream keeps. */
export const EVENTS_MAX = 256;
export const EVENTS_BYTES_MAX = 1024 * 1024;

/** The newest events of a stream, numbered from 1. */
export class EventBuffer {
  private readonly events: { text: string; bytes: number }[] = [];
  private last = 0;
  /** Size of the events in bytes. */
  bytes = 0;

  /** Adds an event and drops the oldest ones above the limits. @returns its number */
  add(text: string): number {
    const bytes = Buffer.byteLength(text);
    this.events.push({ text, bytes });
    this.bytes += bytes;
    while (this.events.length > EVENTS_MAX || this.bytes > EVENTS_BYTES_MAX)
      this.bytes -= this.events.shift()?.bytes ?? 0;
    return (this.last += 1);
  }

  /** Events after the one with this number, 0 for all; null when one of them was dropped, or there is no such number. */
  after(number: number): { number: number; text: string }[] | null {
    const first = this.last - this.events.length + 1;
    if (!(number >= first - 1 && number <= this.last)) return null;
    return this.events.slice(number - first + 1).map(({ text }, index) => ({ number: number + 1 + index, text }));
  }
}
