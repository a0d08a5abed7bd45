import { StringDecoder } from 'node:string_decoder';

/** Cuts a stream of bytes into lines; empty ones are passed over. */
export class LineReader {
  private readonly decoder = new StringDecoder('utf8');
  private rest: string[] = [];
  private chars = 0;

  /** @param charsMax of one line; most of what is held is an unfinished one */
  constructor(
    private readonly charsMax: number,
    private readonly onLine: (line: string) => void,
  ) {}

  /** @throws LineTooLongError */
  push(chunk: Buffer): void {
    const [first = '', ...others] = this.decoder.write(chunk).split('\n');
    this.add(first);
    for (const part of others) {
      this.end();
      this.add(part);
    }
    if (this.chars > this.charsMax) throw new LineTooLongError(`a line is longer than ${this.charsMax} characters`);
  }

  /** What was left unfinished is a line. */
  end(): void {
    const line = this.rest.join('');
    this.rest = [];
    this.chars = 0;
    if (line !== '') this.onLine(line);
  }

  private add(part: string): void {
    this.rest.push(part);
    this.chars += part.length;
  }
}

/** Whoever writes the lines is broken or hostile. */
export class LineTooLongError extends Error {}
