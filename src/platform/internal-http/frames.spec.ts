import { describe, expect, it } from '@jest/globals';
import { END_FRAME, framePrefix, FrameReader, textFrame, type Frame } from './frames.js';

function read(...chunks: Buffer[]): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader((frame) => frames.push(frame));
  for (const chunk of chunks) reader.push(chunk);
  return frames;
}

const head = { status: 201, headers: { 'content-type': 'text/plain', 'set-cookie': ['a=1', 'b=ü'] } };
const message = { text: 'é'.repeat(100) };
const body = Buffer.from('two words é');
const whole = Buffer.concat([
  textFrame('head', JSON.stringify(head)),
  framePrefix('data', body.length),
  body,
  framePrefix('data', 0),
  textFrame('message', JSON.stringify(message)),
  END_FRAME,
]);

describe('a response between processes', () => {
  it('is the same however it is split into chunks', () => {
    for (let size = 1; size <= whole.length; size += 1) {
      const chunks = [];
      for (let at = 0; at < whole.length; at += size) chunks.push(whole.subarray(at, at + size));
      const frames = read(...chunks);
      expect(frames[0]).toEqual({ kind: 'head', value: head });
      expect(frames.slice(-2)).toEqual([{ kind: 'message', value: message }, { kind: 'end' }]);
      const data = frames.flatMap((frame) => (frame.kind === 'data' ? [frame.data] : []));
      expect(Buffer.concat(data)).toEqual(body);
    }
  });

  it('passes data on before its frame is complete', () => {
    const frames = read(Buffer.concat([textFrame('head', '{}'), framePrefix('data', 1_000_000), body]));
    expect(frames.at(-1)).toEqual({ kind: 'data', data: body });
  });

  it('is refused when it is not frames', () => {
    expect(() => read(Buffer.from('HTTP/1.1 200 OK'))).toThrow(/not a frame|too long/);
    expect(() => read(Buffer.from([0x68, 0xff, 0, 0, 0]))).toThrow(/too long/);
    expect(() => read(Buffer.from([0x7a, 0, 0, 0, 0]))).toThrow(/not a frame/);
  });
});
