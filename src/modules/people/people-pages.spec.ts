import { describe, expect, test } from '@jest/globals';
import { browserOf } from './people-pages.js';

describe('the name of a browser', () => {
  const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  test.each([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox on Linux'],
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/150.0 Safari/537.36 Edg/150.0`, 'Edge on Windows'],
    [`Mozilla/5.0 (Linux; Android 10; K) ${webKit} Chrome/150.0 Mobile Safari/537.36`, 'Chrome on Android'],
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) ${webKit} Version/18.0 Safari/604.1`, 'Safari on iPhone'],
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${webKit} Version/18.0 Safari/605.1`, 'Safari on macOS'],
    ['Safari/1', 'Safari'],
    ['', 'A browser without a name'],
    ['a-program/2.0 with a name of more than forty characters', 'a-program/2.0 with a name of more than f'],
  ])('reads %j as %j', (agent, name) => {
    expect(browserOf(agent)).toBe(name);
  });
});
