import { describe, expect, it } from '@jest/globals';
import { LineReader } from './line-reader.js';

function linesOf(chunks: (string | Buffer)[], charsMax = 10, longer: 'refused' | 'cut' = 'cut'): string[] {
  const lines: string[] = [];
  const reader = new LineReader(charsMax, longer, (line) => lines.push(line));
  for (const chunk of chunks) reader.push(Buffer.from(chunk as string));
  reader.finish();
  return lines;
}

describe('lines of a stream', () => {
  it('are whole however the bytes are split, also inside a character', () => {
    const text = Buffer.from('one\ntwö\nthree');
    for (let at = 1; at < text.length; at += 1) {
      expect(linesOf([text.subarray(0, at), text.subarray(at)])).toEqual(['one', 'twö', 'three']);
    }
  });

  it('are cut at the limit, and the next one is whole', () => {
    expect(linesOf(['0123456789', 'abc', 'def\nnext\n'])).toEqual(['0123456789', 'next']);
  });

  it('are refused above the limit before they are buffered', () => {
    expect(() => linesOf(['0123456789', 'a'], 10, 'refused')).toThrow('a line is longer than 10 characters');
    expect(linesOf(['0123456789\n'], 10, 'refused')).toEqual(['0123456789']);
  });

  it('are skipped when they are empty', () => {
    expect(linesOf(['\n\na\n\n'])).toEqual(['a']);
  });
});
