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
    true,
    'https://slipway.example/setup/x',
  ),
  new errors.UpstreamError('down', undefined, true, 'loop', 508),
];

it('a failure is the same one in another process, with the page that ends it', () => {
  for (const failure of samples) {
    const arrived = deserializeError(JSON.parse(JSON.stringify(serializeError(failure))));
    expect(arrived.constructor).toBe(failure.constructor);
    expect({ ...arrived, message: arrived.message }).toEqual({ ...failure, message: failure.message });
  }
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

it('an answer that is not HTTP leaves open whether a call that was sent was carried out', () => {
  const error = Object.assign(new Error('Expected HTTP/'), { code: 'HPE_INVALID_CONSTANT' });
  const messageOf = (written: boolean) =>
    errors.fromSocketError(error, new URL('http://a.test:1/mcp'), written).ofCall().message;
  expect(messageOf(true)).toMatch(/Whether the call was carried out is unknown/);
  expect(messageOf(false)).toBe('a.test:1 does not speak HTTP: is the port right?');
});
