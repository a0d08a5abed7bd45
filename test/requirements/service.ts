/** Rules of the service beyond the contract: tool calls, the MCP endpoint, upstream servers, operation. */
export const service = [
  // Calling a tool over REST
  'call:passes-arguments | Field | `POST …/.tools/{toolPath}` sends the body as the arguments of the tool.',
  'call:result-unchanged | Field | The answer is 200 with the CallToolResult exactly as the upstream sent it: unknown fields, key order and big numbers included.',
  'call:tool-failure | Field | A result with `isError: true` answers 200 and is unchanged.',
  'call:unknown-tool | Field | A tool the upstream does not have answers 404 `not_found`.',
  'call:arguments-invalid | Field | Arguments that are not an object answer 400 `validation_error` and reach no upstream.',
  'call:upstream-rejects | Field | A JSON-RPC error of the upstream answers 422 `tool_error` with its message.',
  'call:no-retry | Field | Every failed tool call carries `x-should-retry: false`.',

  // MCP endpoint of a connection
  'mcp:no-handshake | Field | `POST …/{connectionId}/mcp` answers a request without a handshake before it, also in the root form.',
  'mcp:session-ignored | Field | The session id smithery-stateless is treated as no session id, and requests of 2026-07-28 have none.',
  'mcp:notification | Field | A notification is answered 202 without a body.',
  'mcp:get-delete | Field | GET and DELETE with smithery-stateless as session answer 405, and so does GET with MCP-Protocol-Version and no session.',
  'mcp:bad-request | Field | A body that is not JSON or not a JSON-RPC message answers 400 with a JSON-RPC error.',
  'mcp:unknown-connection | Field | An unknown or foreign connection answers 404 with a JSON-RPC error.',
  'mcp:official-clients | Field | The official MCP client, v1 and v2, lists and calls tools through the endpoint.',

  // Run endpoint of a server
  'hosted:runs | Spec 1, House | A hosted release, a factory of servers or a worker, runs in this service: its run endpoint and connections to it serve its tools.',
  'hosted:published-cli | Field, long | The unmodified output of the published tool that builds and publishes hosted servers runs in this service.',
  'hosted:scanned | Spec 1, House | The tools, resources and prompts of a hosted release are read from its running module; a different declaration of its publisher is a warning in its log.',
  'hosted:config | Field | Hosted code receives the configuration of each caller, with the defaults of its schema.',
  'hosted:secrets | Spec 1, Field | A hosted release receives the secrets of its server that it names, or all of them if it names none.',
  'hosted:records | Spec 1, 2.5 | Console lines and exceptions of hosted code belong to the invocation that caused them.',
  'run:config | Field | Values of the config schema are read by `x-from` and sent by `x-to`, with defaults.',
  'run:config-missing | Field | Missing required values answer 409 and -32002 with `{http, missing}`, invalid ones -32602; no upstream is called.',
  'contract:connect-cli | Field | The published command line tools add, list, get, update and remove connections, and list, find, get and call their tools.',
  'contract:published-cli | Field | The published command line tools publish URLs and bundles, follow and resume releases, search, and keep secrets, unmodified.',
  'contract:bundle | Field | A bundle of the public MCPB tool is published, downloaded without a key byte for byte, and runs.',
  'contract:release-authorization | Field | A publisher authorizes a release in a browser, at the link in its log, once per server.',
  'contract:published-client | Field | The published API client, newest and 0.50, works for namespaces, servers, releases, connections, tools and MCP.',

  // Running it
  'health:alive | Field | `GET /health` answers 200 `{status, timestamp}` without a key.',
];
