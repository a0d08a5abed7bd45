import { describe, expect, it } from '@jest/globals';
import { quoteCapnp } from './workerd-config.js';

describe('a text in the configuration of workerd', () => {
  it('cannot be closed by its content', () => {
    expect(quoteCapnp('a"b\\\n€')).toBe('"a\\x22b\\x5c\\x0a\\xe2\\x82\\xac"');
  });
});
