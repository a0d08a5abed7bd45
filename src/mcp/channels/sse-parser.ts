import { StringDecoder } from 'node:string_decoder';

/** Reads an event stream as it arrives; only the `data` of events named `message` (or unnamed) matters to MCP. */
export class SseParser {
  private readonly decoder = new StringDecoder('utf8');
  private rest = '';
  private data: string[] = [];
  private event = '';

  /** @param onData called with each non-empty event's data; an empty one is a keep-alive */
  constructor(private readonly onData: (data: string) => void) {}

  /** How many characters wait for the end of their line or event: what a byte limit must look at. */
  get pending(): number {
    return this.data.reduce((sum, line) => sum + line.length, this.rest.length);
  }

  push(chunk: Buffer): void {
    const text = this.rest + this.decoder.write(chunk);
    let from = 0;
    for (let end = text.indexOf('\n', from); end >= 0; end = text.indexOf('\n', from)) {
      this.line(text.slice(from, text.charCodeAt(end - 1) === 0x0d && end > from ? end - 1 : end));
      from = end + 1;
    }
    this.rest = from === 0 ? text : text.slice(from);
  }

  private line(line: string): void {
    if (line === '') {
      const data = this.data.length === 1 ? (this.data[0] ?? '') : this.data.join('\n');
      if (data !== '' && (this.event === '' || this.event === 'message')) this.onData(data);
      this.data = [];
      this.event = '';
    } else if (line.startsWith('data:')) {
      this.data.push(line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5));
    } else if (line.startsWith('event:')) {
      this.event = line.slice(6).trim();
    }
  }
}
