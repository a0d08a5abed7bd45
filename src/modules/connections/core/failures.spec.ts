import { expect, it } from '@jest/globals';
import { withHiddenAddress } from '../../../mcp/client/http/hidden-address.js';
import { mayResend } from '../../../mcp/client/may-resend.js';
import { failures } from '../../../mcp/protocol/failures.js';
import * as upstream from '../../../mcp/protocol/mcp-errors.js';
import { failureText } from '../../../mcp/server/mcp-responses.js';
import { McpLoopError } from '../../../mcp/server/mcp-server.errors.js';
import { DomainError, ForbiddenError, statusOf } from '../../../platform/errors/domain-error.js';
import { callerFor, type Caller } from '../../auth/access.types.js';
import { SuspendedError } from '../../auth/auth.errors.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../../oauth/credentials.errors.js';
import { InputInvalidError, InputRequiredError, NotRunnableError, ServerGoneError } from '../../run/run.errors.js';
import { AccessRequiredError } from '../../servers/servers.errors.js';
import { CallRecord } from '../log/log-recorder.js';
import { withSetupUrl, ConnectionInputRequiredError } from './connections.errors.js';
import { statusAfter } from './connection-status.js';

const url = new URL('http://a.test/mcp');
const ofStatus = (status: number, retryAfter?: string) =>
  upstream.fromHttpStatus(status, url, undefined, '', retryAfter);
const failed = (name: 'loop' | 'not our MCP' | 'refused' | 'broken list') =>
  new upstream.UpstreamError('x', { outcomeUnknown: false, failure: name });
const inputs = { http: {}, missing: { headers: ['x-a'], query: ['b'] } };
const { UpstreamAuthRequiredError, UpstreamError, UpstreamTimeoutError } = upstream;

/**
 * A sample of each row, and what follows of it: HTTP status and code, JSON-RPC code (`null`: answered by HTTP status), reason of
 * the status, outcome for the connection; then `ran`: it may have run, `again`: a read is sent again,
 * `address`: the message may name the address.
 */
const table: [error: Error, consequences: string][] = [
  [
    new UpstreamError('x', { outcomeUnknown: true }),
    '502 upstream_error -33002 unreachable exception ran again address',
  ],
  [
    upstream.fromSocketError({ code: 'ECONNREFUSED' }, url, true),
    '502 upstream_error -33002 unreachable exception address',
  ],
  [ofStatus(429), '502 upstream_error -33002 rate_limited exception address'],
  [ofStatus(429, '5'), '429 rate_limited -33002 rate_limited exception address'],
  [ofStatus(503, 'Fri, 01 Jan 2100 00:00:00 GMT'), '503 unavailable -33002 server_error exception address'],
  [ofStatus(429, 'soon'), '502 upstream_error -33002 rate_limited exception address'],
  [ofStatus(500), '502 upstream_error -33002 server_error exception ran again address'],
  [ofStatus(503), '502 upstream_error -33002 server_error exception address'],
  [ofStatus(402), '502 upstream_error -33002 server_error exception address'],
  [ofStatus(404), '502 upstream_error -33002 not_mcp exception address'],
  [upstream.notMcp(url, 'application/json', '{}'), '502 upstream_error -33002 not_mcp exception ran address'],
  [ofStatus(403), '502 upstream_error -33002 forbidden exception address'],
  [upstream.fromSocketError(new ForbiddenError('x'), url, true), '502 upstream_error -33002 blocked exception address'],
  [failed('loop'), '502 upstream_error -33002 loop exception address'],
  [failed('not our MCP'), '502 upstream_error -33002 server_error exception address'],
  [failed('refused'), '502 upstream_error -33002 server_error exception address'],
  [failed('broken list'), '502 upstream_error -33002 server_error exception address'],
  [upstream.unreadable('x'), '502 upstream_error -33002 unreadable exception ran address'],
  [new UpstreamTimeoutError('x', true), '504 timeout -33003 timeout exception ran address'],
  [new UpstreamTimeoutError('x', false), '504 timeout -33003 timeout exception address'],
  [new upstream.CallerLeftError(), '504 timeout -33004 - canceled ran'],
  [new upstream.RestartingError(), '503 unavailable -33002 unreachable exception ran address'],
  [new upstream.UplinkDisconnectedError(true), '503 uplink_disconnected -33002 uplink_waiting denied ran address'],
  [new upstream.UplinkDisconnectedError(), '503 uplink_disconnected -33002 uplink_waiting denied address'],
  [new ServerGoneError('a'), '502 upstream_error -33002 server_deleted exception address'],
  [new upstream.InputNeededError(), '409 input_required -33002 - exception address'],
  [new upstream.UpstreamBusyError('x'), '429 rate_limited -33002 - exception'],
  [new upstream.NotHostedError('x'), '409 not_runnable -33002 source_waiting exception'],
  [new upstream.HostedAwayError('x', 1), '503 unavailable null - exception'],
  [new UpstreamAuthRequiredError('x'), '409 auth_required -33001 unauthorized denied'],
  [new UpstreamAuthRequiredError('x', [], 'insufficient scope'), '409 auth_required -33001 insufficient_scope denied'],
  [new AuthorizationRequiredError('x'), '409 auth_required -33001 authorization_ended denied'],
  [new InputRequiredError(inputs), '409 input_required -32002 missing_values denied'],
  [new InputInvalidError('x', inputs), '400 validation_error -32602 invalid_values denied'],
  [new CredentialUnavailableError('x'), '502 upstream_error -33002 authorization_unavailable denied'],
  [new NotRunnableError('x'), '409 not_runnable -33005 not_runnable denied'],
  [new AccessRequiredError('a'), '403 access_required null - denied'],
  [new SuspendedError('server', 'x'), '403 suspended null - denied'],
  [new McpLoopError('x'), '400 loop -33006 - denied'],
  [new ForbiddenError('x'), '403 forbidden -33002 - denied'],
  [new Error('x'), '500 - null - exception'],
];

function rpcCodeFor(error: Error): number | null {
  try {
    return (JSON.parse(failureText('1', 'prompts/get', error, 'modern')) as { error: { code: number } }).error.code;
  } catch (thrown) {
    expect(thrown).toBe(error);
    return null;
  }
}

function consequencesOf(error: Error): string {
  const { kind = 'internal', code = '-' } = error as Partial<DomainError>;
  const record = new CallRecord({ headers: {} }, null);
  record.connectionId = 'c';
  record.received('tools/list', {});
  record.failed(error);
  const { outcomeUnknown } = error as Partial<upstream.UpstreamFailure>;
  return [
    statusOf[kind],
    code,
    rpcCodeFor(error) ?? 'null',
    statusAfter(error)?.reason ?? '-',
    record.finish({ method: 'POST', url: '/', status: 200 })?.outcome,
    ...(outcomeUnknown ? ['ran'] : []),
    ...(mayResend({ method: 'tools/list' }, error) ? ['again'] : []),
    ...(withHiddenAddress(error, url, '"a"') === error ? [] : ['address']),
  ].join(' ');
}

it('the consequences of each failure', () => {
  expect(table.map(([error]) => consequencesOf(error))).toEqual(table.map(([, consequences]) => consequences));
  for (const [error] of table) expect(mayResend({ method: 'tools/call' }, error)).toBeNull();
});

it('every row of the table has a sample', () => {
  const sampled = table.map(([error]) => (error as { failure?: string }).failure ?? error.name);
  expect(new Set(sampled)).toEqual(new Set([...Object.keys(failures).slice(0, -2), 'ForbiddenError', 'Error']));
});

it('the setup page is added to what a person ends, and the status is that of the failure without it', () => {
  const page = 'https://s.test/page';
  const ways = { url: () => page, personUrl: () => Promise.resolve(page), namespace: 'acme', ownerName: 'a' };
  const hasLink = (error: Error) => JSON.stringify([error, error.message]).includes(page);
  const nobody = callerFor('one');
  const guest: Caller = { ...nobody, keyId: 'key', scopes: [{ level: 'call', namespace: 'acme' }] };
  const readers: Caller[] = [nobody, guest, { ...nobody, keyId: 'key' }];
  for (const [error, consequences] of table) {
    const shown = withSetupUrl(error, ways);
    expect(statusAfter(shown)).toEqual(statusAfter(error));
    const code = /-33001|missing_values|invalid_values/.exec(consequences)?.[0];
    if (code === undefined) expect(shown).toBe(error);
    else expect(rpcCodeFor(shown)).toBe(code === '-33001' ? -33001 : -32002);
    const read = [shown];
    if ('sentence' in shown) {
      const inRest = new ConnectionInputRequiredError(shown as never);
      expect([statusAfter(inRest), statusOf[inRest.kind]]).toEqual([statusAfter(error), 409]);
      read.push(inRest);
    }
    for (const one of code === undefined ? [] : (read as DomainError[])) {
      const texts = [one, ...readers.map((reader) => one.forReader(reader))];
      expect(texts.map(hasLink)).toEqual([false, false, false, true]);
    }
  }
  expect(statusAfter(new InputRequiredError(inputs))?.message).toBe('Input required: header "x-a", query "b".');
  expect(statusAfter(new UpstreamTimeoutError('x', true).ofCall())?.message).toBe('x');
});
