import { describe, expect, it } from '@jest/globals';
import { canonicalPath } from './canonical-path.js';

describe('canonicalPath', () => {
  it.each([
    ['/servers/acme/weather', '/servers/acme%2Fweather'],
    ['/servers/acme%2fweather', '/servers/acme%2Fweather'],
    ['/servers/@acme/weather/releases/latest/resume?x=1', '/servers/acme%2Fweather/releases/latest/resume?x=1'],
    ['/servers/%40acme%2Fweather', '/servers/acme%2Fweather'],
    ['/servers/acme%2Fweather%2F', '/servers/acme%2Fweather'],
    ['/servers/acme/weather%2F', '/servers/acme%2Fweather'],
    ['/servers/acme%2F', '/servers/acme'],
    ['/servers/acme%2F/icon', '/servers/acme/icon'],
    ['/servers/acme/icon', '/servers/acme/icon'],
    ['/servers/acme/icon/icon', '/servers/acme/icon/icon'],
    ['/servers/acme%2Ficon', '/servers/acme%2Ficon'],
    ['/servers/%61cme', '/servers/acme'],
    ['http://host:1/servers/acme/weather', '/servers/acme%2Fweather'],
    ['/servers/acme/weather#icon', '/servers/acme%2Fweather'],
    ['/acme', '/connect/acme'],
    ['/acme?limit=1', '/connect/acme?limit=1'],
    ['/acme/conn/.tools/repo%2Fsearch', '/connect/acme/conn/.tools/repo%2Fsearch'],
    ['/%61cme/conn', '/connect/acme/conn'],
    ['/connect/acme/conn/mcp/', '/connect/acme/conn/mcp'],
    ['/acme/conn/mcp/', '/connect/acme/conn/mcp'],
    ['/run/acme--weather/', '/run/acme--weather'],
    ['/run/acme--weather/mcp/?x=/', '/run/acme--weather/mcp?x=/'],
    ['HTTP://host/acme/conn?a#b', '/connect/acme/conn?a'],
    ['http://host', '/'],
  ])('%s is %s', (target, path) => {
    expect(canonicalPath(target)).toBe(path);
  });

  it.each([
    // A name that stays invalid must not become a valid one by being cleaned again and again.
    ['/servers/@@acme', '/servers/%40%40acme'],
    ['/servers/acme%2F%2F', '/servers/acme%2F%2F'],
    ['/servers/acme%252Fweather', '/servers/acme%252Fweather'],
    ['/servers/acme/../other/weather', '/servers/acme%2F../other/weather'],
    ['/servers/./acme/weather', '/servers/.%2Facme/weather'],
    ['/servers/acme%3Fx', '/servers/acme%3Fx'],
  ])('%s stays invalid', (target, path) => {
    expect(canonicalPath(target)).toBe(path);
  });

  it.each([
    ...['/', '*', '', '/servers', '/servers/', '/servers//acme', '/servers/%', '/servers/acme/%zz', '/servers/acme%00'],
    ...['/Servers/acme/weather', '/SERVERS/acme', '//servers/acme', '/./servers/acme', '/%73ervers/acme/weather'],
    ...[
      '/connect',
      '/connect/acme',
      '/connect/acme/conn?a=b/',
      '/%63onnect/acme',
      '/Acme',
      '/ac',
      '/acme%2Fconn',
      '/-acme',
    ],
    ...[
      '/namespaces/acme',
      '/run',
      '/run/acme',
      '/run/acme/files/',
      '/health',
      '/docs/',
      '/openapi.json',
      '/favicon.ico',
      '/.well-known/x',
      'x:/acme',
      'acme/conn',
    ],
  ])('%s stays as it is', (target) => {
    expect(canonicalPath(target)).toBe(target);
  });
});
