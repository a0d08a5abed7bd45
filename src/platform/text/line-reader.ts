import { StringDecoder } from 'node:string_decoder';

/** Splits a stream of bytes into lines. Buffers only the unfinished line; skips empty lines. */
export class LineReader {
  private readonly decoder = new StringDecoder('utf8');
  private pieces: string[] = [];
  private chars = 0;

  /**
   * @param charsMax length limit of a line
   * @param longer treatment of longer lines: an error, or cut at the limit
   */
  constructor(
    private readonly charsMax: number,
    private readonly longer: 'refused' | 'cut',
    private readonly onLine: (line: string) => void,
  ) {}

  /** @throws Error if longer lines are rejected */
  push(chunk: Buffer): void {
    const [first = '', ...rest] = this.decoder.write(chunk).split('\n');
    this.append(first);
    for (const part of rest) {
      this.emit();
      this.append(part);
    }
  }

  /** Handles the last line, at the end of the stream. */
  finish(): void {
    this.append(this.decoder.end());
    this.emit();
  }

  private append(part: string): void {
    const fitting = part.slice(0, this.charsMax - this.chars);
    if (fitting.length < part.length && this.longer === 'refused') {
      throw new Error(`a line is longer than ${this.charsMax} characters`);
    }
    if (fitting === '') return;
    this.pieces.push(fitting);
    this.chars += fitting.length;
  }

  private emit(): void {
    if (this.pieces.length === 0) return;
    const line = this.pieces.join('');
    this.pieces = [];
    this.chars = 0;
    this.onLine(line);
  }
}
