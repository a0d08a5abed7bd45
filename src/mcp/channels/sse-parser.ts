import { StringDecoder } from 'node:string_decoder';

/** Reads an event stream as it arrives; only the `data` of events named `message` (or unnamed) matters to MCP. */
export class SseParser {
  private readonly decoder = new StringDecoder('utf8');
  /** The pieces of a line whose end has not come: joined once, since searching them again would be quadratic. */
  private line: string[] = [];
  private lineChars = 0;
  private data: string[] = [];
  private dataChars = 0;
  private event = '';

  /** @param onData called with each non-empty event's data; an empty one is a keep-alive */
  constructor(private readonly onData: (data: string) => void) {}

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
    if (line === '') {
      const data = this.data.length === 1 ? (this.data[0] ?? '') : this.data.join('\n');
      if (data !== '' && (this.event === '' || this.event === 'message')) this.onData(data);
      this.data = [];
      this.dataChars = 0;
      this.event = '';
    } else if (line.startsWith('data:')) {
      this.data.push(line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5));
      this.dataChars += line.length;
    } else if (line.startsWith('event:')) {
      this.event = line.slice(6).trim();
    }
  }
}
