import fc from 'fast-check';
import { isNamespaceName, SERVER_NAME, SERVER_SUBRESOURCES } from '../../../src/platform/http/resource-names.js';

const lower = 'abcdefghijklmnopqrstuvwxyz0123456789'.split('');
const letters = [...lower, ...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('')];

/** A valid namespace name. */
export const namespaceNames = fc
  .string({ unit: fc.constantFrom(...lower, '-'), minLength: 3, maxLength: 39 })
  .filter(isNamespaceName);

/** A name a server may have. */
export const serverNames = fc
  .string({ unit: fc.constantFrom(...letters, '-', '_'), minLength: 3, maxLength: 39 })
  .filter((name) => SERVER_NAME.test(name) && !SERVER_SUBRESOURCES.has(name));

function percent(char: string): string {
  return Array.from(Buffer.from(char), (byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join('');
}

/** The text, with some of its characters percent-encoded once, in either letter case. */
export function encodedOnce(text: string): fc.Arbitrary<string> {
  const spelled = Array.from(text, (char) =>
    fc.oneof({ weight: 8, arbitrary: fc.constant(char) }, fc.constantFrom(percent(char), percent(char).toLowerCase())),
  );
  return fc.tuple(...spelled).map((chars) => chars.join(''));
}

/** Every way published clients write a qualified name into a path; `server` empty for the namespace-only server. */
export function qualifiedNameSpellings(namespace: string, server: string): fc.Arbitrary<string> {
  const slash = fc.constantFrom('/', '%2F', '%2f');
  const at = fc.constantFrom('', '', '@', '%40');
  const end = fc.constantFrom('', '', '%2F', '%2f');
  const name =
    server === ''
      ? encodedOnce(namespace)
      : fc.tuple(encodedOnce(namespace), slash, encodedOnce(server)).map((parts) => parts.join(''));
  return fc.tuple(at, name, end).map((parts) => parts.join(''));
}

/** Spellings in place of a slash, or next to one. */
const separators = [
  ...['/', '//', '%2F', '%2f', '%252F', '%25252F', '%2F%2F', '\\', '%5C', '%c0%af', '%ef%bc%8f', ';/', '/;x/', '%3B/'],
  ...['/./', '/../', '/%2e/', '/%2e%2e/', '/.%2E/', '%2F..%2F', '%2F.%2F', '/x/../', '%2Fx%2F..%2F', '/%252e%252e/'],
  ...['/@', '%2F@', '%2F%40', '/%00/', '%00/', '/%20', '%09/', '/%', '/%zz/', '%3F/', '%23/'],
];
const ends = [
  '',
  '',
  '',
  '/',
  '//',
  '%2F',
  '%2f',
  '/.',
  '/..',
  '%00',
  '%',
  '?',
  '#',
  '#/x',
  '?/../x',
  ';',
  '.json',
  '%20',
];
const starts = ['/', '/', '/', '//', '/./', '/../', '/x/../', '/@', '/%2F', '/%40', '/;/', 'http://h/', 'HTTP://h//'];

function spelledSegment(segment: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 5, arbitrary: fc.constant(segment) },
    { weight: 3, arbitrary: encodedOnce(segment) },
    { weight: 1, arbitrary: encodedOnce(segment).map((text) => text.replaceAll('%', '%25')) },
    { weight: 1, arbitrary: fc.constantFrom(segment.toUpperCase(), `@${segment}`, `%40${segment}`, `@@${segment}`) },
    { weight: 1, arbitrary: fc.constantFrom(`${segment}%00`, `${segment}.`, `${segment}%0a`, `${segment}%ED%A0%80`) },
  );
}

/** Spellings of the request target with these segments: equal to it, similar to it, or malformed. */
export function hostileSpellings(segments: string[]): fc.Arbitrary<string> {
  const [first, ...rest] = segments as [string, ...string[]];
  const separator = fc.oneof({ weight: 2, arbitrary: fc.constant('/') }, fc.constantFrom(...separators));
  const following = rest.map((segment) => fc.tuple(separator, spelledSegment(segment)).map((pair) => pair.join('')));
  return fc
    .tuple(fc.constantFrom(...starts), spelledSegment(first), fc.tuple(...following), fc.constantFrom(...ends))
    .map(([start, head, tail, end]) => `${start}${head}${tail.join('')}${end}`);
}
