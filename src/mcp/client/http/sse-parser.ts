import { StringDecoder } from 'node:string_decoder';

/** An event id goes back in a header, so what no header can carry is no id. */
const EVENT_ID = /^[\x21-\x7e][\x20-\x7e]{0,1023}$/;

/** Reads an event stream as it arrives; the `data` of events named `message` (or unnamed) are MCP's messages. */
export class SseParser {
  /** The id of the last whole event that had one, '' for none: a stream that breaks can be taken up behind it. */
  lastEventId = '';
  /** After how long the server wants to be asked again when the stream ends; null when it did not say. */
  retryMs: number | null = null;
  private readonly decoder = new StringDecoder('utf8');
  /** The pieces of a line whose end has not come: joined once, since searching them again would be quadratic. */
  private line: string[] = [];
  private lineChars = 0;
  private data: string[] = [];
  private dataChars = 0;
  private event = '';
  private eventId = '';

  /**
   * @param onData called with each non-empty message; an empty one is a keep-alive
   * @param onOther called with the name and data of every other event
   */
  constructor(
    private readonly onData: (data: string) => void,
    private readonly onOther?: (event: string, data: string) => void,
  ) {}

  /** How many characters wait for the end of their line or event: what a byte limit must look at. */
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
