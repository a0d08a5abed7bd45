import type { Requirement } from '../requirements.js';

/** Uplinks: local servers that are paired with a connection over a WebSocket. */
export const uplinks = {
  // The handshake
  'uplink:pair:paths': {
    source: 'Field',
    behavior:
      'A WebSocket handshake at `/{namespace}/{connectionId}`, `/connect/{namespace}/{connectionId}` or either with `/uplink` behind it pairs a local server.',
  },
  'uplink:pair:unauthorized': {
    source: 'Field',
    behavior: 'A handshake without a valid key answers 401 Unauthorized.',
  },
  'uplink:pair:not-found': {
    source: 'Field',
    behavior:
      'A handshake for a missing connection, one that is not an uplink, one of another owner or an id with a slash has the same answer, 404 Not Found.',
  },
  'uplink:pair:conflict': {
    source: 'Field',
    behavior: 'A second local server without `force` is refused with 409 Conflict, and the first one stays.',
  },
  'uplink:pair:force': {
    source: 'Field',
    behavior: 'With `force=1` a second local server takes over, and the first socket is closed with 1001 `replaced`.',
  },
  'uplink:pair:again': {
    source: 'Field',
    behavior: 'A local server whose tunnel ended can be paired again any number of times.',
  },
  'uplink:pair:preflight': {
    source: 'Field',
    behavior:
      '`GET …/{connectionId}/uplink` answers 200 while a local server is paired and 503 `uplink_disconnected` otherwise.',
  },
  'uplink:pair:bad-handshake': {
    source: 'House',
    behavior:
      'A request that is not a WebSocket handshake answers 400 and does not occupy the connection; one that offers another protocol with `Upgrade` is answered without an upgrade.',
  },

  // Status
  'uplink:status:waiting': {
    source: 'Field',
    behavior:
      'Without a tunnel the connection is `disconnected`, its message describes the pairing, and it has no `serverInfo`.',
  },
  'uplink:status:connected': {
    source: 'Field',
    behavior: 'After the initialization of the local server the connection is `connected` and has its `serverInfo`.',
  },
  'uplink:status:error': {
    source: 'Field',
    behavior: 'A local server that does not speak MCP makes the connection `error`, with the fault in its message.',
  },
  'uplink:status:tools-forgotten': {
    source: 'Field',
    behavior: 'The tools of one local server are not cached for the next one.',
  },
  'uplink:status:current-only': {
    source: 'House',
    behavior: 'The end of a replaced tunnel changes nothing.',
  },
  'uplink:deleted': {
    source: 'Field',
    behavior:
      'Deleting the connection or its namespace closes the tunnel, and a local server that reconnects with `force=1` receives 404.',
  },
  'uplink:key-revoked': {
    source: 'House',
    behavior: 'A tunnel whose key was revoked or has expired is closed within 5 s.',
  },

  // Calls
  'uplink:call:disconnected': {
    source: 'Field',
    behavior:
      'A call without a tunnel fails at once: 503 `uplink_disconnected` with `x-should-retry: false` over REST, a JSON-RPC error over MCP.',
  },
  'uplink:call:ids': {
    source: 'Field',
    behavior:
      'Callers with the same ids and progress tokens share one tunnel, and each receives its own answer and progress.',
  },
  'uplink:call:ends-with-tunnel': {
    source: 'Field',
    behavior: 'Calls in flight when the tunnel ends fail at once, with an error that their outcome is unknown.',
  },
  'uplink:call:in-flight': {
    source: 'House',
    behavior:
      'The 257th concurrent call, and calls while a local server leaves more than 4 MB unread, are refused with 429 `rate_limited` and not sent. One that sends requests without reading the answers is closed with 1008.',
  },
  'uplink:call:handshake-once': {
    source: 'Field',
    behavior: 'The local server is initialized once for each tunnel, however many clients initialize.',
  },

  // Frames
  'uplink:frames:not-json': {
    source: 'House',
    behavior: 'A frame that is not JSON closes the tunnel with 1007, one of more than 16 MB with 1009.',
  },
  'uplink:frames:not-one-message': {
    source: 'Field',
    behavior: 'A frame that holds a batch or no JSON-RPC message closes the tunnel with 1008.',
  },
  'uplink:frames:binary': {
    source: 'Field',
    behavior: 'A message in a binary frame is accepted like one in a text frame.',
  },
  'uplink:frames:unknown-answers': {
    source: 'House',
    behavior: 'Responses without a request and notifications of unknown methods are ignored.',
  },
  'uplink:server-requests': {
    source: 'Field',
    behavior: 'A `ping` of the local server is answered; any other request without a caller to answer it gets -32601.',
  },
  'uplink:server-requests:asked': {
    source: 'House',
    behavior:
      'A request of the local server reaches the only caller of calls, in any process, if it can answer, and the answer is returned; while calls of several callers run, none receives it. The capabilities for which servers ask are declared to the local server.',
  },
  'uplink:listen': {
    source: 'House',
    behavior:
      'Listeners receive list changes and updates of their resources, also from another process; the local server gets one subscription for each resource, and its end with the last listener.',
  },

  // Keeping it alive
  'uplink:ping': {
    source: 'House',
    behavior: 'A local server that leaves two pings unanswered is disconnected; one that answers them stays connected.',
  },
  'uplink:restart': {
    source: 'House',
    behavior: 'A process that stops closes its tunnels with 1001 `restarting` and releases them.',
    isLong: true,
  },

  // Several processes
  'uplink:processes:call': {
    source: 'House',
    behavior:
      'A call in one process reaches the local server of a tunnel in another one, with progress and cancellation.',
  },
  'uplink:processes:force': {
    source: 'House',
    behavior:
      'A tunnel in another process is a conflict like one in the same process; `force=1` closes it with 1001 `replaced`.',
  },
  'uplink:processes:killed': {
    source: 'House',
    behavior:
      'When the process of a tunnel is killed, the connection is `disconnected` after its lease expired, and can be paired in another process.',
    isLong: true,
  },
  'uplink:processes:secret': {
    source: 'House',
    behavior: 'The route between processes answers 404 to requests without the secret of the service.',
  },

  // The published client
  'uplink:cli:pairs': {
    source: 'Field',
    behavior: 'The published command line tool pairs a local stdio server, and its tools are listed and called.',
  },
  'uplink:cli:interrupt': {
    source: 'Field',
    behavior: 'SIGINT and SIGTERM end the published client and delete the connection, without an error.',
    isLong: true,
  },
  'uplink:cli:server-dies': {
    source: 'Field',
    behavior: 'When its local server dies, the published client ends and the connection is `disconnected`.',
    isLong: true,
  },
  'uplink:cli:replaced': {
    source: 'Field',
    behavior:
      'A published client that is replaced reports that and does not reconnect; one whose socket breaks reconnects by itself.',
    isLong: true,
  },
} as const satisfies Record<string, Requirement>;
