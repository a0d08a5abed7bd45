import { expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { traceHeaders } from './trace-context.js';

verifies('trace:context', 'passes on only what every party propagates', () => {
  const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  const sent = (traceparent: string, tracestate?: string) =>
    traceHeaders((name) => ({ traceparent, tracestate })[name]);
  const valid = `00-${trace}-${span}-01`;
  const none = [
    `ff-${trace}-${span}-01`,
    `00-${'0'.repeat(32)}-${span}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    'x',
    '',
  ];
  for (const traceparent of none) expect(sent(traceparent, 'a=1')).toEqual({});
  expect(sent(valid)).toEqual({ traceparent: valid });
  for (const state of ['a=1', 'a=1,b=2', 'x'.repeat(512)]) {
    expect(sent(valid, state)).toEqual({ traceparent: valid, tracestate: state });
  }
  for (const state of ['', 'x'.repeat(513), 'a=\u00e9', 'a=\n'])
    expect(sent(valid, state)).toEqual({ traceparent: valid });
});
