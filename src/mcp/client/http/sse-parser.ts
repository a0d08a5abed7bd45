import { StringDecoder } from 'node:string_decoder';

/** Event ids that a `Last-Event-ID` header can carry; others are ignored. */
const EVENT_ID = /^[\x21-\x7e][\x20-\x7e]{0,1023}$/;

/** Incremental parser of an event stream. MCP messages are the `data` of events named `message` or unnamed. */
export class SseParser {
  /** Id of the last complete event that had one, '' for none; a broken stream is resumed after it. */
  lastEventId = '';
  /** Last `retry` value of the server in milliseconds; null without one. */
  retryMs: number | null = null;
  private readonly decoder = new StringDecoder('utf8');
  /** Pieces of an incomplete line, joined once at its end: joining each time would be quadratic. */
  private line: string[] = [];
  private lineChars = 0;
  private data: string[] = [];
  private dataChars = 0;
  private event = '';
  private eventId = '';

  /**
   * @param onData receives each non-empty message; an empty one is a keep-alive
   *
   * @param onOther receives the name and data of every other event
   */
  constructor(
    private readonly onData: (data: string) => void,
    private readonly onOther?: (event: string, data: string) => void,
  ) {}

  /** Characters buffered for an incomplete line or event, for the caller's size limit. */
  get pending(): number {
    return this.dataChars + this.lineChars;
  }

  push(chunk: Buffer): void {
    const fresh = this.decoder.write(chunk);
    let from = 0;
    for (let end = fresh.indexOf('\n'); end >= 0; end = fresh.indexOf('\n', from)) {
      this.line.push(fresh.slice(from, end));
      const line = this.line.length === 1 ? (this.line[0] ?? '') : this.line.join('');
      this.line = [];
      this.lineChars = 0;
      this.read(line.endsWith('\r') ? line.slice(0, -1) : line);
      from = end + 1;
    }
    if (from === fresh.length) return;
    this.line.push(from === 0 ? fresh : fresh.slice(from));
    this.lineChars += fresh.length - from;
  }

  private read(line: string): void {
    if (line === '') this.end();
    else if (line.startsWith('data:')) {
      this.data.push(line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5));
      this.dataChars += line.length;
    } else if (line.startsWith('event:')) this.event = line.slice(6).trim();
    else if (line.startsWith('id:')) this.eventId = line.slice(3).trim();
    else if (line.startsWith('retry:')) this.readRetry(line.slice(6).trim());
  }

  private end(): void {
    const data = this.data.length === 1 ? (this.data[0] ?? '') : this.data.join('\n');
    const { event } = this;
    if (this.eventId !== '' && EVENT_ID.test(this.eventId)) this.lastEventId = this.eventId;
    this.data = [];
    this.dataChars = 0;
    this.event = '';
    this.eventId = '';
    if (data === '') return;
    if (event === '' || event === 'message') this.onData(data);
    else this.onOther?.(event, data);
  }

  private readRetry(value: string): void {
    if (/^\d{1,9}$/.test(value)) this.retryMs = Number(value);
  }
}
