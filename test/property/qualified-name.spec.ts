import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatQualifiedName, parseQualifiedName } from '../../src/modules/servers/server.types.js';
import { toQualifiedName } from '../../src/modules/servers/server.decorator.js';
import { requireServerName } from '../../src/modules/servers/server.validators.js';
import { ServerNotFoundError } from '../../src/modules/servers/servers.errors.js';
import { InvalidInputError } from '../../src/platform/errors/domain-error.js';
import { canonicalPath } from '../../src/platform/http/canonical-path.js';
import { SERVER_SUBRESOURCES } from '../../src/platform/http/resource-names.js';
import { hostileSpellings, namespaceNames, serverNames } from '../support/documentation/spellings.js';
import { randomRuns } from '../support/random-runs.js';

/** A name without a server stands for the namespace-only server. */
const anyServer = fc.oneof({ weight: 3, arbitrary: serverNames }, fc.constant(''));

const oddTexts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('a', 'Z', '0', '-', '_', '/', '@', '.', '%', '\0', '\n', 'ä', ' '),
    maxLength: 45,
  }),
);

function isServerName(text: string): boolean {
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
  const chars = text.split('');
  const form = chars.every((char, index) => letters.includes(char) || (index > 0 && '_-'.includes(char)));
  return form && chars.length >= 3 && chars.length <= 39;
}

function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('a qualified name', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(namespaceNames, anyServer, (namespace, name) => {
        expect(parseQualifiedName(formatQualifiedName({ namespace, name }))).toEqual({ namespace, name });
      }),
    );
  });

  it('reaches the router as it was written', () => {
    fc.assert(
      fc.property(namespaceNames, anyServer, (namespace, name) => {
        const path = canonicalPath(`/servers/${formatQualifiedName({ namespace, name })}`);
        expect(toQualifiedName(decodeURIComponent(path.slice('/servers/'.length)))).toEqual({ namespace, name });
      }),
    );
  });

  it('no server can have is a server not found', () => {
    const texts = fc.oneof(
      oddTexts,
      fc.tuple(namespaceNames, oddTexts).map((parts) => parts.join('/')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const error = thrown(() => toQualifiedName(text));
        if (error !== undefined) expect(error).toBeInstanceOf(ServerNotFoundError);
        // A name that passes is safe in a query.
        else expect(text).toMatch(/^[a-z0-9][a-z0-9-]+[a-z0-9](\/([a-zA-Z0-9][a-zA-Z0-9_-]+)?)?$/);
      }),
      { numRuns: randomRuns(2_000) },
    );
  });

  it('has at most one slash by the time a hostile path passes for a server', () => {
    fc.assert(
      fc.property(hostileSpellings(['servers', 'acme', 'weather']), (target) => {
        const [path = ''] = canonicalPath(target).split('?');
        const [, first, segment = '', ...rest] = path.split('/');
        if (first !== 'servers' || rest.some((part) => part !== '')) return;
        let name: string;
        try {
          name = decodeURIComponent(segment);
        } catch {
          return;
        }
        if (thrown(() => toQualifiedName(name)) === undefined) {
          expect(['acme', 'acme/weather', 'acme/WEATHER', 'weather']).toContain(name);
        }
      }),
      { numRuns: randomRuns(3_000) },
    );
  });
});

describe('the name of a new server', () => {
  it('is 3 to 39 letters, digits, hyphens and underscores, alphanumeric first, and not reserved', () => {
    const texts = fc.oneof(oddTexts, serverNames, fc.constantFrom(...SERVER_SUBRESOURCES));
    fc.assert(
      fc.property(texts, (text) => {
        const isFine = text === '' || (isServerName(text) && !SERVER_SUBRESOURCES.has(text));
        const error = thrown(() => requireServerName(text));
        if (isFine) expect(error).toBeUndefined();
        else expect(error).toBeInstanceOf(InvalidInputError);
      }),
      { numRuns: randomRuns(2_000) },
    );
  });
});
