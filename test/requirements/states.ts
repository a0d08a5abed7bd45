import type { Requirement } from '../requirements.js';

/** Spec 3: how releases and connections change state. */
export const states = {
  // Spec 3: releases
  'release:resume:working': {
    source: 'Spec 3',
    behavior: 'Resuming a paused release moves it to WORKING.',
  },
  'release:resume:paused-only': {
    source: 'Spec 3, Field',
    behavior: 'Resuming a release that is not paused answers 400 and changes nothing.',
  },
  'release:resume:auth-timeout': {
    source: 'Spec 3, House',
    behavior: 'A release in AUTH_TIMEOUT is still paused and can be resumed.',
  },
  'release:state:picked-up': {
    source: 'Spec 3, House',
    behavior: 'A QUEUED release becomes WORKING when a worker takes it.',
  },
  'release:state:outcome': {
    source: 'Spec 3, House',
    behavior:
      'A WORKING release ends as SUCCESS, FAILURE, FAILURE_SCAN or INTERNAL_ERROR, by the stage and kind of its failure.',
  },
  'release:state:pauses': {
    source: 'Spec 3, Field',
    behavior: 'A WORKING release whose upstream asks for OAuth authorization becomes AUTH_REQUIRED.',
  },
  'release:state:times-out': {
    source: 'Spec 3, House',
    behavior: 'An AUTH_REQUIRED release that nobody authorizes in time becomes AUTH_TIMEOUT.',
  },
  'release:state:cancelled': {
    source: 'Spec 3, House',
    behavior: 'A newer release or the deletion of the server makes an unfinished release CANCELLED.',
  },
  'release:state:refused': {
    source: 'Spec 3, House',
    behavior: 'Every transition that the release state table does not list is refused.',
  },

  // Spec 3: connections
  'connection:state:connected': {
    source: 'Spec 3, Field',
    behavior: 'Creating a connection to a working server answers `connected` after a real MCP initialization.',
  },
  'connection:state:connected-after-round-trip': {
    source: 'Spec 3, House',
    behavior: 'A server that accepts the TCP connection but never completes the initialization is never `connected`.',
  },
  'connection:state:auth-required': {
    source: 'Spec 3, Field',
    behavior:
      'An upstream that answers 401 makes the connection `auth_required`, and its status states that a header is required.',
  },
  'connection:state:auth-required-setup': {
    source: 'Spec 3, Field',
    behavior: 'An `auth_required` status carries `setupUrl` and `authorizationUrl`, where a person can authorize.',
  },
  'connection:state:authorized': {
    source: 'Spec 3, Field',
    behavior: 'A finished authorization makes an `auth_required` connection `connected`.',
  },
  'connection:state:refresh-refused': {
    source: 'Spec 3, Field',
    behavior: 'A refused refresh of the stored credential makes the connection `auth_required` again.',
  },
  'connection:state:input-required': {
    source: 'Spec 3, Field',
    behavior: 'Missing values of the config schema make the connection `input_required` with `http` and `missing`.',
  },
  'connection:state:input-supplied': {
    source: 'Spec 3, Field',
    behavior: 'Supplying all missing values makes an `input_required` connection `connected`.',
  },
  'connection:state:uplink': {
    source: 'Spec 3, Field',
    behavior: 'An uplink connection is `connected` while its tunnel is open and `disconnected` otherwise.',
  },
  'connection:state:error': {
    source: 'Spec 3, Field',
    behavior: 'An unusable target makes the connection `error`, with a `message` that states the fault and the remedy.',
  },
  'connection:put:session-kept': {
    source: 'House',
    behavior:
      'A PUT that changes only name or metadata of a connection, or nothing, and the start of a recording do not contact the server and keep its session; a PUT of the stored values writes nothing.',
  },
  'connection:state:put-re-evaluates': {
    source: 'Spec 3, Field',
    behavior:
      'A PUT that changes what is sent to the server or offered of it, or that names the target or headers of a connection that is not `connected`, asks the server and stores the status of that attempt.',
  },

  // One sentence of its own for each way a target can fail
  'connection:error:network': {
    source: 'House',
    behavior:
      'The status of a connection has its own message for a host name that does not resolve, a closed port, a TLS failure and a server that does not respond before the deadline.',
  },
  'connection:error:wrong-address': {
    source: 'House',
    behavior:
      'If something other than an MCP server answers (a web page, a 404, a redirect, another API), the status is `not_mcp` and suggests to check the path.',
  },
  'connection:error:reached': {
    source: 'House',
    behavior:
      'A server that answers 429, with an error or with what is no JSON has the reason `rate_limited`, `server_error` or `unreadable`, each with its advice.',
  },
  'connection:error:about-the-server': {
    source: 'House',
    behavior: 'The status of a connection describes its server, not the call that observed the failure.',
  },
  'connection:error:unreadable-answer': {
    source: 'House',
    behavior:
      'A call with an unreadable response is sent once, and its error states that it may have been carried out.',
  },
  'connection:error:private-address': {
    source: 'House',
    behavior:
      'The status of a connection to a private address states that it was refused and names the setting that allows it.',
  },
} as const satisfies Record<string, Requirement>;
