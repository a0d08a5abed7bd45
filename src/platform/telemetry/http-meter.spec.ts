import { describe, expect, it } from '@jest/globals';
import { kindOf } from './http-meter.js';

describe('the kind of a request', () => {
  it.each([
    ['/connect/acme/mine/.tools/echo', 'rest'],
    ['/connect/acme/mine/mcp', 'mcp'],
    ['/connect/acme/mine/mcp?x=1', 'mcp'],
    ['/connect/acme/.mcp', 'mcp'],
    ['/connect/acme/mine/mcp/more', 'rest'],
    ['/connect/acme/mcp', 'rest'],
    ['/run/acme--weather/mcp', 'run'],
    ['/servers/acme%2Fweather/logs', 'registry'],
    ['/servers?q=x', 'registry'],
    ['/skills', 'registry'],
    ['/serversx', 'other'],
    ['/metrics', 'other'],
    ['/', 'other'],
  ])('%s has the kind %s', (url, kind) => {
    expect(kindOf(url)).toBe(kind);
  });
});
