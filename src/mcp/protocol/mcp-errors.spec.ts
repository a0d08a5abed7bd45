import { expect, it } from '@jest/globals';
import { deserializeError, isSerializable, serializeError } from '../../platform/internal-http/error-codec.js';
import * as errors from './mcp-errors.js';

const samples: errors.UpstreamFailure[] = [
  new errors.UpstreamTimeoutError('slow', true),
  new errors.UplinkDisconnectedError(true).ofCall(),
  new errors.RestartingError().ofCall(),
  new errors.UpstreamBusyError('busy'),
  new errors.CallerLeftError(),
  new errors.InputNeededError(),
  new errors.NotHostedError('off'),
  new errors.HostedAwayError('away', 1),
  new errors.UpstreamAuthRequiredError(
    errors.authRequired.scopes,
    ['Bearer scope="a"'],
    'insufficient scope',
    'https://slipway.example/setup/x',
  ),
  new errors.UpstreamError('down', { outcomeUnknown: true, failure: 'loop', status: 508 }),
  new errors.StartingError(),
];

it('a failure is the same error in another process, with the page that resolves it', () => {
  for (const failure of samples) {
    const arrived = deserializeError(JSON.parse(JSON.stringify(serializeError(failure))));
    expect(arrived.constructor).toBe(failure.constructor);
    expect({ ...arrived, message: arrived.message }).toEqual({ ...failure, message: failure.message });
  }
});

it('a failure of a newer version, whose row is unknown, is that of an upstream that cannot be reached', () => {
  const sent = serializeError(new errors.UpstreamError('new', { outcomeUnknown: true }));
  const arrived = deserializeError({ ...sent, fields: { ...sent.fields, failure: 'of a newer version' } });
  expect(arrived).toMatchObject({ kind: 'upstream', code: 'upstream_error', message: 'new', outcomeUnknown: true });
});

it.each([
  ['Go', [{ url: 'https://a/x' }, { url: 'http://b/' }], 'Go. Open https://a/x and http://b/ , then call again.'],
  ['Go.', { k: { params: { url: 'https://a/x' } }, l: { params: {} } }, 'Go. Open https://a/x , then call again.'],
  ['Go to https://a/x', [{ url: 'https://a/x' }], 'Go to https://a/x'],
  ['Go', [{ url: 'javascript:x' }, { url: 'https://a/ b' }, { url: 5 }, null, 7, 'x'], 'Go'],
  ['Go', undefined, 'Go'],
  ['Go', 'https://a/x', 'Go'],
])('a message %j with the pages of %j', (message, elicitations, expected) => {
  expect(errors.withPages(message, elicitations)).toBe(expected);
});

it('every class of failure can go to another process', () => {
  const classes = Object.values(errors).filter(
    (value) => typeof value === 'function' && value.prototype instanceof errors.UpstreamFailure,
  );
  expect(new Set(samples.map((failure) => failure.constructor))).toEqual(new Set(classes));
  for (const failure of samples) expect(isSerializable(failure)).toBe(true);
});

it('the words of a server end with one full stop', () => {
  const { message } = errors.fromHttpStatus(402, new URL('http://a.test/mcp'), undefined, 'Pay first.');
  expect(message).toMatch(/ The server said: "Pay first"\.$/);
});

it('a call whose failure two layers describe is said once to have an unknown outcome', () => {
  const { message } = new errors.UplinkDisconnectedError(true).ofCall().ofCall();
  expect(message.match(/was carried out is unknown/g)).toHaveLength(1);
});

it('a response that is not HTTP leaves open whether a sent call was carried out', () => {
  const error = Object.assign(new Error('Expected HTTP/'), { code: 'HPE_INVALID_CONSTANT' });
  const messageOf = (written: boolean) =>
    errors.fromSocketError(error, new URL('http://a.test:1/mcp'), written).ofCall().message;
  expect(messageOf(true)).toMatch(/Whether the call was carried out is unknown/);
  expect(messageOf(false)).toBe('a.test:1 does not speak HTTP: is the port right?');
});
