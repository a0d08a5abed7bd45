import { describe, expect, it } from '@jest/globals';
import { forAuthor, readOutputLine, saysOutOfMemory } from './workerd-process.js';
import { quoted } from './workerd-config.js';

const now = new Date(5_000);

describe('the output of workerd', () => {
  it('belongs to the hosted code when it has a numeric time and no source, and to workerd otherwise', () => {
    const line = (fields: object) => readOutputLine(JSON.stringify({ level: 'warn', message: 'm', ...fields }), now);
    expect(line({ timestamp: 7 })).toEqual({ by: 'code', line: { at: 7, level: 'warn', message: 'm' } });
    expect(line({ timestamp: 0 })).toMatchObject({ by: 'code', line: { at: now.getTime() } });
    expect(line({ timestamp: '7', source: 's' })).toEqual({ by: 'workerd', message: 'm' });
    expect(line({ timestamp: 7, source: 's' }).by).toBe('workerd');
    for (const text of ['<--- Last few GCs --->', '{', '{"a":1}', '{"timestamp":7,"message":{}}']) {
      expect(readOutputLine(text, now)).toEqual({ by: 'workerd', message: text });
    }
  });

  it('contains the errors of hosted code for authors, and no internals', () => {
    const loading = 'service program: Uncaught Error: no luck\n  at module.js:1:7\n  at main.mjs:2:3';
    expect(forAuthor(loading)).toBe('Error: no luck\n    at module.js:1:7');
    expect(forAuthor('Uncaught exception: workerd/jsg/value.h:1511: failed: remote.jsg.TypeError: boom')).toBe(
      'TypeError: boom',
    );
    expect(forAuthor('*** Received signal #6: Aborted stack: /usr/lib/x@0x8')).toBeNull();
  });

  it('shows that memory ran out', () => {
    expect(saysOutOfMemory('V8 fatal error; message = : allocation failed: JavaScript heap out of memory')).toBe(true);
    expect(saysOutOfMemory('Uncaught exception: remote.jsg.Error: nothing left')).toBe(false);
  });
});

describe('a text in the configuration of workerd', () => {
  it('cannot be closed by its content', () => {
    expect(quoted('a"b\\\n€')).toBe('"a\\x22b\\x5c\\x0a\\xe2\\x82\\xac"');
  });
});
