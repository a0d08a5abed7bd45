/** Uplinks: local servers that are paired with a connection over a WebSocket. */
export const uplinks = [
  // The handshake
  'uplink:pair:paths | Field | A WebSocket handshake at `/{namespace}/{connectionId}`, `/connect/{namespace}/{connectionId}` or either with `/uplink` behind it pairs a local server.',
  'uplink:pair:unauthorized | Field | A handshake without a valid key answers 401 Unauthorized.',
  'uplink:pair:not-found | Field | A handshake for a missing connection, one that is not an uplink, one of another owner or an id with a slash has the same answer, 404 Not Found.',
  'uplink:pair:conflict | Field | A second local server without `force` is refused with 409 Conflict, and the first one stays.',
  'uplink:pair:force | Field | With `force=1` a second local server takes over, and the first socket is closed with 1001 `replaced`.',
  'uplink:pair:again | Field | A local server whose tunnel ended can be paired again any number of times.',
  'uplink:pair:preflight | Field | `GET …/{connectionId}/uplink` answers 200 while a local server is paired and 503 `uplink_disconnected` otherwise.',

  // Status
  'uplink:status:waiting | Field | Without a tunnel the connection is `disconnected`, its message describes the pairing, and it has no `serverInfo`.',
  'uplink:status:connected | Field | After the initialization of the local server the connection is `connected` and has its `serverInfo`.',
  'uplink:status:error | Field | A local server that does not speak MCP makes the connection `error`, with the fault in its message.',
  'uplink:status:tools-forgotten | Field | The tools of one local server are not cached for the next one.',
  'uplink:deleted | Field | Deleting the connection or its namespace closes the tunnel, and a local server that reconnects with `force=1` receives 404.',
  'uplink:suspended | Field | Suspending the connection or its namespace, and disabling the account, closes the tunnel in every process. A local server is refused (403 `suspended` with the reason) until the operator lifts it.',

  // Calls
  'uplink:call:disconnected | Field | A call without a tunnel fails at once: 503 `uplink_disconnected` with `x-should-retry: false` over REST, a JSON-RPC error over MCP.',
  'uplink:call:ids | Field | Callers with the same ids and progress tokens share one tunnel, and each receives its own answer and progress.',
  'uplink:call:ends-with-tunnel | Field | Calls in flight when the tunnel ends fail at once, with an error that their outcome is unknown.',
  'uplink:call:handshake-once | Field | The local server is initialized once for each tunnel, however many clients initialize.',

  // Frames
  'uplink:frames:not-one-message | Field | A batch in a frame is read as its messages; a frame that holds no JSON-RPC message is passed over.',
  'uplink:frames:binary | Field | A message in a binary frame is accepted like one in a text frame.',
  'uplink:server-requests | Field | A `ping` of the local server is answered; any other request without a caller to answer it gets -32601.',

  // The published client
  'uplink:cli:pairs | Field | The published command line tool pairs a local stdio server, and its tools are listed and called.',
  'uplink:cli:interrupt | Field, long | SIGINT and SIGTERM end the published client and delete the connection, without an error.',
  'uplink:cli:server-dies | Field, long | When its local server dies, the published client ends and the connection is `disconnected`.',
  'uplink:cli:replaced | Field, long | A published client that is replaced reports that and does not reconnect; one whose socket breaks reconnects by itself.',
];
