import { expect, it } from '@jest/globals';
import {
  CallerLeftError,
  UplinkBusyError,
  UplinkDisconnectedError,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamTimeoutError,
  type UpstreamFailure,
} from './mcp-errors.js';
import { fromWire, toWire } from './wired-failure.js';

it('a failure is the same one in another process, with the page that ends it', () => {
  const failures: UpstreamFailure[] = [
    new UpstreamTimeoutError('slow', true),
    new UplinkDisconnectedError(true).ofCall(),
    new UplinkBusyError('busy'),
    new CallerLeftError(),
    new UpstreamAuthRequiredError(true, ['Bearer scope="a"'], true, 'https://slipway.example/setup/x'),
    new UpstreamError('down', undefined, true),
  ];
  for (const failure of failures) {
    const arrived = fromWire(JSON.parse(JSON.stringify(toWire(failure))));
    expect(arrived).toBeInstanceOf(failure.constructor);
    expect({ ...arrived, message: arrived.message }).toEqual({ ...failure, message: failure.message });
  }
  const bug = new TypeError('nobody may read this');
  expect(() => toWire(bug)).toThrow(bug);
});
