import type { Requirement } from '../requirements.js';

/** Rules of the service beyond the contract: tool calls, the MCP endpoint, upstream servers, operation. */
export const service = {
  // Calling a tool over REST
  'call:passes-arguments': {
    source: 'Field',
    behavior: '`POST …/.tools/{toolPath}` sends the body as the arguments of the tool.',
  },
  'call:result-unchanged': {
    source: 'Field',
    behavior:
      'The answer is 200 with the CallToolResult exactly as the upstream sent it: unknown fields, key order and big numbers included.',
  },
  'call:tool-failure': { source: 'Field', behavior: 'A result with `isError: true` answers 200 and is unchanged.' },
  'call:unknown-tool': { source: 'Field', behavior: 'A tool the upstream does not have answers 404 `not_found`.' },
  'call:arguments-invalid': {
    source: 'Field',
    behavior: 'Arguments that are not an object answer 400 `validation_error` and reach no upstream.',
  },
  'call:upstream-rejects': {
    source: 'Field',
    behavior: 'A JSON-RPC error of the upstream answers 422 `tool_error` with its message.',
  },
  'call:auth-required': {
    source: 'House',
    behavior: 'An upstream that wants authorization answers 409 `auth_required`, never 401.',
  },
  'call:upstream-down': {
    source: 'House',
    behavior: 'An upstream that is unreachable or sends invalid responses answers 502 `upstream_error`.',
  },
  'call:timeout': {
    source: 'House',
    behavior:
      'A call that exceeds its deadline, also one whose response stalls after its headers, answers 504 `timeout` before 55 seconds.',
  },
  'call:counted-in-chaos': {
    source: 'House',
    behavior:
      'While processes, Postgres, Redis and MCP servers are killed, paused and restarted, every call is executed at most once, an answered one exactly once, and an error states if the call may have been carried out.',
  },
  'call:no-retry': { source: 'Field', behavior: 'Every failed tool call carries `x-should-retry: false`.' },
  'call:foreign': {
    source: 'House',
    behavior: "Calling a tool of another owner's connection answers 404 `not_found` and reaches no upstream.",
  },

  // MCP endpoint of a connection
  'mcp:no-handshake': {
    source: 'Field',
    behavior: '`POST …/{connectionId}/mcp` answers a request without a handshake before it, also in the root form.',
  },
  'mcp:session-ignored': {
    source: 'Field',
    behavior: 'The session id smithery-stateless is treated as no session id, and requests of 2026-07-28 have none.',
  },
  'mcp:initialize': {
    source: 'House',
    behavior: '`initialize` is answered, so that ordinary MCP clients connect with a URL and a bearer only.',
  },
  'mcp:notification': { source: 'Field', behavior: 'A notification is answered 202 without a body.' },
  'mcp:get-delete': {
    source: 'Field',
    behavior:
      'GET and DELETE with smithery-stateless as session answer 405, and so does GET with MCP-Protocol-Version and no session.',
  },
  'mcp:eras': {
    source: 'House',
    behavior:
      'Clients of 2026-07-28 and of every older revision are served by the rules of their revision; violations are refused as the specification requires.',
  },
  'mcp:bridge': {
    source: 'House',
    behavior:
      'A client of one era uses an upstream of the other; features that one of them lacks are translated or reported as missing.',
  },
  'mcp:input': {
    source: 'House',
    behavior:
      'A request of an upstream during a call reaches the client of that call, if it can answer, and no other; otherwise the error contains the request.',
  },
  'mcp:parked': {
    source: 'House',
    behavior:
      'A call whose legacy upstream sends a request to a client of 2026-07-28 waits up to 10 minutes for the answer, which is accepted from its caller only, for its request, in any process; when the call is lost, the error asks the client to call again, and a `requestState` that no call waits for reaches no server of an earlier revision.',
  },
  'mcp:long-calls': {
    source: 'House',
    behavior:
      'A call at an MCP endpoint fails after `MCP_CALL_TIMEOUT_MS`, or the `callTimeoutMs` of its connection, without a message, and after an hour in any case; a 504 of REST names the MCP endpoint.',
  },
  'mcp:loop': {
    source: 'House',
    behavior:
      'A request that passed through this service before is refused; a connection that leads back has the status `error` with the loop and the remedy.',
  },
  'mcp:tasks': {
    source: 'House',
    behavior:
      'A tool that a server of 2025-11-25 runs only as a task can be called like any other. A client of 2025-11-25 can start and follow tasks, which belong to its account and connection; where that is not possible, a call with `task` is refused before it runs.',
  },
  'mcp:session': {
    source: 'House',
    behavior:
      '`initialize` opens a session that is valid in any process, for one key and one target, for 24 hours; any other id answers 404.',
  },
  'mcp:sse': {
    source: 'House',
    behavior:
      'GET without a session and without MCP-Protocol-Version opens a stream of HTTP+SSE (2024-11-05), at connections, run endpoints and namespaces.',
  },
  'mcp:resume': {
    source: 'House',
    behavior:
      'A client of 2025-06-18 or 2025-11-25 with a session resumes the stream of a call by GET with Last-Event-ID, at any process, for 5 minutes, 256 events and 1 MB; an expired stream answers 404. Its call continues meanwhile.',
  },
  'mcp:own-stream': {
    source: 'House',
    behavior:
      'Log messages, custom notifications and updates on the stream of an upstream session reach the client of that session; those of a shared session reach the sole call in flight. Changes are not announced where the upstream has no stream for them.',
  },
  'mcp:server-requests': {
    source: 'House',
    behavior:
      'A request of a legacy server outside of calls reaches the GET stream of the client whose session it is, in any process, else its running call; without either, or if the client did not declare the capability, it is refused with -32601. Notifications of a client reach its upstream sessions in every process, except those about its session here, its calls and progress.',
  },
  'mcp:session-marks': {
    source: 'House',
    behavior: 'Of the sessions of a key 500 at most are stored, the newest.',
  },
  'mcp:session-restart': {
    source: 'House',
    behavior:
      'A session with a log level, a subscription or declared client capabilities answers 404 at a process that started later and does not know that state; one of a server that restores sessions continues, and so does one without state.',
  },
  'mcp:log-level': {
    source: 'House',
    behavior:
      'The log level of a client is set in its session at a legacy server or a local server, before its next call and again in each new session, in any process.',
  },
  'mcp:both-eras': {
    source: 'House',
    behavior:
      'A server of both eras serves a legacy client that answers requests, sets a log level or subscribes in its legacy era, and all others in its modern one: each has the features of a direct connection.',
  },
  'mcp:session-stream': {
    source: 'House',
    behavior: 'A session has one stream, by GET, that sends list changes and updates of its subscribed resources.',
  },
  'mcp:subscriptions': {
    source: 'House',
    behavior:
      '`subscriptions/listen` sends a client of 2026-07-28 the requested notifications that the upstream supports, and no others.',
  },
  'mcp:batch': {
    source: 'House',
    behavior: 'Batches of up to 100 messages are accepted from clients of 2025-03-26 only, and answered one by one.',
  },
  'mcp:vanish': {
    source: 'House',
    behavior:
      'A client that disconnects leaves no call, no request and no listener behind. A call whose stream can be resumed continues for 5 minutes.',
  },
  'mcp:bad-request': {
    source: 'Field',
    behavior: 'A body that is not JSON or not a JSON-RPC message answers 400 with a JSON-RPC error.',
  },
  'mcp:unknown-connection': {
    source: 'Field',
    behavior: 'An unknown or foreign connection answers 404 with a JSON-RPC error.',
  },
  'mcp:no-key': {
    source: 'House',
    behavior:
      'A request to an MCP endpoint without a valid key answers 401 with a JSON-RPC error and `WWW-Authenticate`.',
  },
  'mcp:upstream-error': {
    source: 'House',
    behavior: 'A JSON-RPC error of the upstream reaches the client with its code, message and data.',
  },
  'mcp:upstream-down': {
    source: 'House',
    behavior: 'An upstream that is unreachable or too slow gives a JSON-RPC error, never status 401 or 404.',
  },
  'mcp:auth-required': {
    source: 'House',
    behavior:
      'An upstream that requires authorization never causes a 401 of this service: `tools/call` answers an `isError` text, others a JSON-RPC error; clients with URL elicitation receive the page.',
  },
  'mcp:extensions': {
    source: 'House',
    behavior:
      'Extensions and experimental capabilities of up to 1 KB pass through `initialize` both ways, and unknown capabilities of a server to its clients; clients with equal extensions that answer no requests share a session of the server, up to 10 kinds of them.',
  },
  'mcp:passes-through': {
    source: 'House',
    behavior:
      'Tools, resources, prompts and completion reach the client unchanged: requests and answers pass byte for byte. The answer has the id of the request exactly as it was written.',
  },
  'mcp:progress': {
    source: 'House',
    behavior: 'Progress of a call reaches its own client, with its own token, and no other client.',
  },
  'mcp:official-clients': {
    source: 'Field',
    behavior: 'The official MCP client, v1 and v2, lists and calls tools through the endpoint.',
  },
  // Run endpoint of a server
  'run:any-key': {
    source: 'House',
    behavior:
      '`POST /run/{slug}` and `/run/{slug}/mcp` call the current external release of a server, with any valid key, by every process, for every MCP client.',
  },
  'run:unknown': {
    source: 'House',
    behavior:
      'An unknown slug answers 404 with a JSON-RPC error, and so do other paths below the slug of an external release.',
  },
  'hosted:runs': {
    source: 'Spec 1, House',
    behavior:
      'A hosted release, a factory of servers or a worker, runs in this service: its run endpoint and connections to it serve its tools.',
  },
  'hosted:published-cli': {
    source: 'Field',
    behavior:
      'The unmodified output of the published tool that builds and publishes hosted servers runs in this service.',
    isLong: true,
  },
  'hosted:scanned': {
    source: 'Spec 1, House',
    behavior:
      'The tools, resources and prompts of a hosted release are read from its running module; a different declaration of its publisher is a warning in its log.',
  },
  'hosted:fails': {
    source: 'House',
    behavior:
      'A module that fails to start ends its release, and does not change the current release; the output of a module during its scan is in the log.',
  },
  'hosted:config': {
    source: 'Field',
    behavior: 'Hosted code receives the configuration of each caller, with the defaults of its schema.',
  },
  'hosted:secrets': {
    source: 'Spec 1, Field',
    behavior: 'A hosted release receives the secrets of its server that it names, or all of them if it names none.',
  },
  'hosted:records': {
    source: 'Spec 1, 2.5',
    behavior: 'Console lines and exceptions of hosted code belong to the invocation that caused them.',
  },
  'hosted:stateful': {
    source: 'House',
    behavior:
      'Each client session of a stateful hosted server has an upstream session of its own; clients without sessions have one for each key.',
  },
  'hosted:session:kept': {
    source: 'House',
    behavior:
      'A caller of a stateful hosted server has the same session in every process, after restarts, after its program was killed and in later releases; no other caller has it. Concurrent calls in it receive their own answers, and the requests of their own calls.',
  },
  'hosted:session:ended': {
    source: 'House',
    behavior:
      'A session with a stateful hosted server ends with its client’s DELETE or its connection, in whichever process, and its stored data is deleted.',
  },
  'hosted:paths': {
    source: 'House',
    behavior:
      'Other paths below the slug of a hosted release go to its code, with any method, recorded, for any valid key.',
  },
  'hosted:paths-reserved': {
    source: 'House',
    behavior: 'Paths with a segment `__smithery`, which is internal, answer 404 from outside in every spelling.',
  },
  'hosted:paths-walls': {
    source: 'House',
    behavior:
      'Hosted code never receives keys and cookies of this service, cannot set cookies for it, and its pages run no scripts on its origin.',
  },
  'run:get-delete': {
    source: 'House',
    behavior: 'GET with a revision and no session, and DELETE without one, answer 405 and name POST.',
  },
  'run:limits': {
    source: 'House',
    behavior: 'A message over 16 MB, one from a foreign web page and one that is not JSON-RPC are refused.',
  },
  'run:not-runnable': {
    source: 'House',
    behavior:
      'A server without a successful release, or whose current one cannot run, answers with the reason and the remedy.',
  },
  'run:key-kept': {
    source: 'House',
    behavior: 'Neither the caller’s key nor any header or parameter outside of the config schema reaches the upstream.',
  },
  'run:config': {
    source: 'Field',
    behavior: 'Values of the config schema are read by `x-from` and sent by `x-to`, with defaults.',
  },
  'run:config-missing': {
    source: 'Field',
    behavior:
      'Missing required values answer 409 and -32002 with `{http, missing}`, invalid ones -32602; no upstream is called.',
  },
  'run:channels': {
    source: 'House',
    behavior: 'Callers of one account with the same values share one upstream session; others have their own.',
  },
  'run:renamed': {
    source: 'House',
    behavior: 'A renamed slug takes effect at once, within 5 s if the message is lost; the old one is unknown.',
  },
  'run:new-release': {
    source: 'House',
    behavior:
      'A new current release is called at once, within 5 s if the message is lost; calls in flight finish. Deleting a server ends its upstream sessions in every process.',
  },
  'run:upstream-down': {
    source: 'House',
    behavior: 'An unreachable or slow server gives a JSON-RPC error without its address.',
  },

  'contract:connect-cli': {
    source: 'Field',
    behavior:
      'The published command line tools add, list, get, update and remove connections, and list, find, get and call their tools.',
  },
  'contract:published-cli': {
    source: 'Field',
    behavior:
      'The published command line tools publish URLs and bundles, follow and resume releases, search, and keep secrets, unmodified.',
  },
  'contract:bundle': {
    source: 'Field',
    behavior: 'A bundle of the public MCPB tool is published, downloaded without a key byte for byte, and runs.',
  },
  'contract:release-authorization': {
    source: 'Field',
    behavior: 'A publisher authorizes a release in a browser, at the link in its log, once per server.',
  },
  'connection:status:server-gone': {
    source: 'House',
    behavior: 'The status of a connection to the run endpoint of a deleted server states the deletion.',
  },
  'contract:published-client': {
    source: 'Field',
    behavior:
      'The published API client, newest and 0.50, works for namespaces, servers, releases, connections, tools and MCP.',
  },

  // Upstream channels
  'channel:single-flight': {
    source: 'House',
    behavior:
      'Calls of one connection share one upstream session: 50 parallel first calls send exactly one initialize.',
  },
  'channel:reinitialize': {
    source: 'House',
    behavior:
      'A session that the upstream lost is initialized once again, with its stream and subscriptions: callers receive no error, and listeners receive list changes.',
  },
  'channel:session-in-doubt': {
    source: 'House',
    behavior:
      'A session in which a call is refused (by no JSON-RPC answer to it, and no status of authorization or load) is probed by `ping`, at most once in 30 seconds, and dropped if that is refused too: that call fails, and the next one works.',
  },
  'channel:ids-never-cross': {
    source: 'House',
    behavior: 'Concurrent callers with the same JSON-RPC id each receive their own answer.',
  },
  'channel:cancel': {
    source: 'House',
    behavior:
      'A caller that disconnects, or sends `notifications/cancelled`, cancels its own call, and no other, at the upstream; it gets no answer, but on a stream that it could resume.',
  },
  'channel:byte-cap': {
    source: 'House',
    behavior: 'An upstream answer over the byte limit ends the call with an error.',
  },
  'channel:sse': {
    source: 'House',
    behavior:
      'Responses of an upstream as JSON and as server-sent events give the same result, and so do calls over HTTP+SSE; the loss of that stream ends the session and its calls.',
  },
  'channel:outcome-unknown': {
    source: 'House',
    behavior:
      'A `tools/call` that breaks off after it was written is reported with unknown outcome and is not sent again.',
  },
  'channel:era': {
    source: 'House',
    behavior:
      'The era of an upstream is detected by `server/discover`, once for all processes, and again when the server behaves otherwise. Servers of every era are supported: a modern request has its envelope and headers, also those that a tool requires.',
  },
  'channel:listen': {
    source: 'House',
    behavior: 'All listeners of an upstream share one stream, and each receives the notifications of its filter.',
  },
  'channel:resume': {
    source: 'House',
    behavior: 'A legacy response whose stream broke is resumed at that place, without calling again.',
  },
  'channel:cache-hints': {
    source: 'House',
    behavior:
      'A cached result is returned for the lifetime that its server set, in the same channel, until a notification invalidates it.',
  },
  'channel:bearer': {
    source: 'House',
    behavior: 'After a refused token another token is requested once, and the request is sent once more with it.',
  },
  'channel:headers-changed': { source: 'House', behavior: 'After PUT with new headers no call sends the old ones.' },

  // Egress guard
  'egress:private-refused': {
    source: 'House',
    behavior:
      'Every spelling of a private, loopback, link-local or reserved address is refused before a packet is sent.',
  },
  'egress:scheme': { source: 'House', behavior: 'Schemes other than http and https are refused.' },
  'egress:dns': {
    source: 'House',
    behavior:
      'A name with private addresses only is refused, and of a name with public ones as well no private one is dialled.',
  },
  'egress:rebinding': { source: 'House', behavior: 'The connection is opened to the address that was checked.' },
  'egress:redirect': {
    source: 'House',
    behavior:
      'No redirect of an upstream is followed: the error names its target, and no request or header is sent there.',
  },
  'egress:allow': {
    source: 'House',
    behavior: '`EGRESS_ALLOW` permits the listed ranges and hosts and nothing else.',
  },
  'egress:proxy': {
    source: 'House',
    behavior:
      'With EGRESS_PROXY every public host is reached through that proxy, hosts in EGRESS_ALLOW without it, and names that this machine resolves to an internal address are refused.',
  },
  'egress:proxy:failure': {
    source: 'House',
    behavior: 'An unreachable or refusing proxy gives an error that names EGRESS_PROXY, without its password.',
  },

  // Running it
  'health:alive': { source: 'Field', behavior: '`GET /health` answers 200 `{status, timestamp}` without a key.' },
  'health:ready': {
    source: 'House',
    behavior: '`GET /ready` answers 200 while database and queue can be reached and 503 otherwise, without a key.',
  },
  'limits:account-share': {
    source: 'House',
    behavior:
      'An account has a share of the tunnels, open streams, links, connection checks and events of resumable streams of a process and cannot take all.',
  },
  'limits:requests': {
    source: 'House',
    behavior:
      'Requests of a key, of an account, and of an address without a valid key beyond their limit per minute answer 429 in the shape of their path, with `Retry-After`, and close the connection; `RateLimit` and `RateLimit-Policy` foretell it.',
  },
  'limits:large-answers': {
    source: 'House',
    behavior:
      'Messages of MCP servers above 256 KB are read and passed on one at a time for each account, with a pause as long as the work in between.',
  },
  'limits:tenant-schemas': {
    source: 'House',
    behavior:
      'JSON Schemas of tenants (mocks, `configSchema`) are compiled and checked in a thread: it serves the namespaces in turns and ends a job after 1.5 s; other requests do not wait.',
  },
  'streams:key-ended': {
    source: 'House',
    behavior:
      'What a key opened (streams of MCP, calls, logs, releases and hosted answers, sessions, calls that wait for input) ends within 5 s after its revocation or expiry in every process, also if the message about it is lost.',
  },
  'limits:pipelining': {
    source: 'House',
    behavior:
      'Of the requests of one connection that have no answer yet, 16 are executed; after one more the connection closes behind the 16th answer.',
  },
  'limits:failures': {
    source: 'House',
    behavior:
      'Many wrong keys from an address answer 429 with a growing `Retry-After`, without delay; a valid key from that address is accepted.',
  },
  'limits:calls-at-once': {
    source: 'House',
    behavior: 'Concurrent calls of an account beyond its limit answer 429 `rate_limited` and are not sent.',
  },
  'limits:usage': {
    source: 'House',
    behavior:
      '`GET /accounts/me/usage` answers each limit of the account and its current use; the operator sets limits of single accounts with `PATCH /accounts/{id}/limits`.',
  },
  'limits:quotas': {
    source: 'House',
    behavior:
      'A creation beyond a quota of an account or namespace answers 429 in the shape of its path; existing resources can still be changed.',
  },
  'limits:log-share': {
    source: 'House',
    behavior:
      'An account loses records, and no records of others, beyond a `logBytesPerDay` that was set; beyond its default share once all accounts have written the log of a day. A row is charged what it takes on disk.',
  },
  'files:s3': {
    source: 'House',
    behavior:
      'With `BLOB_URL` uploaded files are stored in S3: every process reads them without a shared folder, and uploads answer 503 while S3 cannot be used.',
  },
  'releases:retention': {
    source: 'House',
    behavior:
      'Releases that are not current, not among the newest `RELEASE_KEEP` of their server and older than `RELEASE_KEEP_DAYS` are deleted with their files.',
  },
  'hosting:sessions-expire': {
    source: 'House',
    behavior: 'Session data of a program without calls for longer than the session lifetime is deleted.',
  },
  'metrics:samples': {
    source: 'House',
    behavior: 'The dashboard and the alert rules in `docker` use only existing metrics.',
  },
  'kubernetes:confined': {
    source: 'House',
    behavior:
      'Containers in `docker/kubernetes` run without root, capabilities, privilege escalation or a writable root file system, and with bounded temporary volumes.',
  },
  'kubernetes:secrets': {
    source: 'House',
    behavior:
      'Host pods of `docker/kubernetes` hold Postgres, Redis, S3 and `ENCRYPTION_KEYS`, and no other secret of the service.',
  },
  'kubernetes:rendered': {
    source: 'House',
    behavior:
      'The objects in `docker/kubernetes` and what kustomize renders of them are valid and complete, and the service accepts their settings in each role and runs hosted code with them.',
  },
  'kubernetes:ingress': {
    source: 'House',
    behavior:
      'The Ingress of `docker/kubernetes` passes bodies and streams with the limits of `docker/nginx.conf`, and refuses `/internal` and `/metrics`.',
  },
  'kubernetes:migration': {
    source: 'House',
    behavior: 'Pods of `docker/kubernetes` wait until the database is at their version, and their log says why.',
  },
  'kubernetes:backup': {
    source: 'House',
    behavior:
      '`docker/kubernetes` makes a backup each night; a successful one removes those that are more than 14 days old.',
  },
  'metrics:access': {
    source: 'House',
    behavior:
      '`GET /metrics` is off until METRICS_TOKEN is set, and answers 401 to requests without that token; API keys are not accepted.',
  },
  'metrics:figures': {
    source: 'House',
    behavior:
      'The metrics contain the requests, open resources, queues and drops of this process, in the Prometheus text format.',
  },
  'metrics:secrecy': {
    source: 'House',
    behavior: 'No metric contains a tenant, an address, a tool or a key, and no action of a tenant adds a series.',
  },
  'http:cors': {
    source: 'House',
    behavior:
      'Scripts of origins in CORS_ORIGINS can use REST and MCP endpoints with a key; scripts of other origins cannot, and no script of another origin can read a page.',
  },
  'http:no-page': {
    source: 'House',
    behavior:
      'No answer except a page runs, loads or renders anything in a browser; an answer to a request with an API key is not cached.',
  },
  'docs:safe': {
    source: 'House',
    behavior: '`/docs` stores no key, runs only its own scripts and cannot be framed.',
  },
  'docs:guides': {
    source: 'House',
    behavior:
      'The API reference and the pages of the documentation are readable at `/docs` without a key, and `GET /` and the API document link to them.',
  },
  'docs:try-it-out': {
    source: 'House',
    behavior: 'The first five steps work on the docs page with the entered key, the metadata filter included.',
  },
  'log:redacted': {
    source: 'House',
    behavior: 'No log line contains an API key, an Authorization header or a connection header.',
  },
  'log:request-id': {
    source: 'House',
    behavior: 'All log lines of one request share a request id.',
  },
  'health:stale-reads': {
    source: 'House',
    behavior:
      'Calls of what was called in the 5 s before the database became unavailable use its rows for STALE_READ_MS. A received revocation takes effect at once.',
  },
  'health:clock': {
    source: 'House',
    behavior: 'Clock skew is reported in `/ready`, in a metric and in the error of a call that fails because of it.',
  },
  'service:fuzz': {
    source: 'House',
    behavior:
      'No input causes an undocumented status, an undocumented body or a 500; answers, lists and counted quotas are consistent afterwards.',
  },
  'service:canaries': {
    source: 'House',
    behavior:
      'A secret is in no answer except the one that creates it, and in no log line, metric, job, table or file, plain or encoded.',
  },
  'health:storage': {
    source: 'House',
    behavior: 'A full disk answers 507, and is reported in `/ready` and a metric.',
  },
  'health:embedded-restart': {
    source: 'House',
    behavior:
      'An embedded Postgres that dies, or whose process ends beside others that share it, is started again on the same port; if that fails, the process ends with code 1.',
  },
  'log:process': {
    source: 'House',
    behavior:
      'Log lines in JSON name role, host and version of their process, and those about releases and connections the qualified name and the account; `slipway_build_info` has version and commit.',
  },
  'log:access': { source: 'House', behavior: 'With ACCESS_LOG every request is logged at info, with its account.' },
  'start:open-host': {
    source: 'House',
    behavior:
      'With HOST=0.0.0.0 and without PUBLIC_URL links begin with http://localhost:PORT, and a warning states that.',
  },
  'stop:drain': {
    source: 'House',
    behavior:
      'After a stop signal `/ready` answers 503 for DRAIN_MS while the process serves requests and keeps no connection; a second signal ends it at once.',
  },
  'stop:rolling': {
    source: 'House',
    isLong: true,
    behavior:
      'Behind the sample of nginx, a restart of each process in turn fails no call that lasts up to 5 s, and repeats none.',
  },
  'start:loaded-code': {
    source: 'House',
    behavior:
      'A process imports no code of disabled roles and features, and packages for rare tasks, such as compilers, only at their first use.',
  },
  'start:first-key': {
    source: 'House',
    behavior:
      'The first start with an empty database prints an operator key that works; later starts print none and keep all data.',
  },
  'start:bad-setting': {
    source: 'House',
    behavior:
      'Invalid settings, a busy port and a data folder that is not writable end the start with one sentence each and exit code 1.',
  },
  'start:newer-database': {
    source: 'House',
    behavior: 'A database with an unknown migration ends the start with one sentence that names it, and exit code 1.',
  },
  'backup:restore': {
    source: 'House',
    behavior:
      '`slipway backup` of a running service and `slipway restore` to an empty database and data folder preserve every row, stored file, session of hosted code and secret; a non-empty target is refused.',
    isLong: true,
  },
  'backup:damaged': {
    source: 'House',
    behavior:
      '`slipway restore` refuses a backup that is damaged, incomplete or of a newer version before it writes, and names the file.',
    isLong: true,
  },
  'backup:keys': {
    source: 'House',
    behavior:
      'A backup contains encryption keys only with `--with-keys`; a restore without them names the required keys.',
    isLong: true,
  },
  'move:counts': {
    source: 'House',
    behavior:
      '`slipway move` copies the embedded database to `DATABASE_URL` and files to `BLOB_URL` while the service is stopped, with the same number of rows in each table.',
    isLong: true,
  },
  'prune:removes': {
    source: 'House',
    behavior:
      '`slipway prune` removes the days of the log, the releases and the files that the retention allows to go, beside a running service, and keeps all else; `--dry-run` prints the same counts and removes nothing.',
  },
  'doctor:checks': {
    source: 'House',
    behavior:
      '`slipway doctor` checks settings, login, database, migrations, keys, connections, namespaces, queue, clock, storage, open files, isolation and egress: one line each with the next step, exit code 1 if a check failed, and no secret.',
    isLong: true,
  },
  'start:secret-file': {
    source: 'House',
    behavior:
      'A secret setting can be in the file that NAME_FILE names; both set, or an unreadable file, stops the start.',
  },
  'compose:scale': {
    source: 'House',
    behavior: 'The compose file runs several processes of the service behind its proxy.',
  },
  'compose:confined': {
    source: 'House',
    behavior:
      'Containers of the compose file have no capability that they do not need, a read-only root file system, a memory limit and bounded logs.',
  },
  'network:own-ca': {
    source: 'House',
    behavior:
      'Postgres, Redis, S3, MCP servers and requests of hosted code trust the authorities of NODE_EXTRA_CA_CERTS.',
  },
  'telemetry:context': {
    source: 'House',
    behavior:
      'The `x-request-id`, `traceparent` and `tracestate` of a caller go upstream as headers, the trace context in `_meta` too.',
  },
  'telemetry:otlp': {
    source: 'House',
    behavior:
      'With a collector of OpenTelemetry set, requests, upstream calls and queries are sent as one trace, and runtime logs as log records; what cannot be sent is counted, and calls do not wait for it.',
  },
  'stop:graceful': {
    source: 'House',
    behavior:
      'A stop signal lets requests in flight finish, ends upstream sessions and stops the embedded database; a call in flight after 25 s answers an error that contains "restarting". A queue that cannot be reached does not hold the end up.',
  },
  'stop:killed': {
    source: 'House',
    behavior: 'After SIGKILL of the service no embedded database process remains, and the next start keeps the data.',
  },
} as const satisfies Record<string, Requirement>;
