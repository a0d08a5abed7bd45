import { StringDecoder } from 'node:string_decoder';

/** Characters of one line; what is longer is cut, and the rest of it passed over. */
const LINE_CHARS_MAX = 131_072;

/** Cuts what a process writes into lines, however it comes, and holds no more than one of them. */
export class LineReader {
  private readonly decoder = new StringDecoder('utf8');
  private held = '';

  constructor(private readonly onLine: (line: string) => void) {}

  write(chunk: Buffer): void {
    const parts = this.decoder.write(chunk).split('\n');
    const last = parts.pop() ?? '';
    for (const part of parts) {
      this.onLine(this.hold(part));
      this.held = '';
    }
    this.held = this.hold(last);
  }

  /** A last line without an end. */
  end(): void {
    const rest = this.hold(this.decoder.end());
    this.held = '';
    if (rest !== '') this.onLine(rest);
  }

  private hold(part: string): string {
    return (this.held + part).slice(0, LINE_CHARS_MAX);
  }
}
