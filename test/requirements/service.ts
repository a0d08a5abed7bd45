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
      'The answer is 200 with the CallToolResult as the upstream sent it: unknown fields, key order and big numbers included.',
  },
  'call:tool-failure': { source: 'Field', behavior: 'A result with `isError: true` is 200 and unchanged.' },
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
    behavior: 'An upstream that is down or speaks nonsense answers 502 `upstream_error`.',
  },
  'call:timeout': {
    source: 'House',
    behavior: 'A call that exceeds its deadline answers 504 `timeout` before 55 seconds.',
  },
  'call:counted-in-chaos': {
    source: 'House',
    behavior:
      'While processes, Postgres, Redis and MCP servers are killed, paused and restarted, every call is executed at most once, ' +
      'an answered one exactly once, and an error says when the call may have been carried out.',
  },
  'call:no-retry': { source: 'Field', behavior: 'Every failed tool call carries `x-should-retry: false`.' },
  'call:foreign': {
    source: 'House',
    behavior: "Calling a tool of another owner's connection answers 404 `not_found` and reaches no upstream.",
  },

  // MCP endpoint of a connection
  'mcp:jsonrpc': { source: 'House', behavior: 'An MCP message without `jsonrpc: "2.0"` answers -32600.' },
  'mcp:no-handshake': {
    source: 'Field',
    behavior: '`POST …/{connectionId}/mcp` answers a request without a handshake before it, also in the root form.',
  },
  'mcp:session-ignored': {
    source: 'Field',
    behavior: 'The session id smithery-stateless counts as none, and requests of 2026-07-28 have none.',
  },
  'mcp:initialize': {
    source: 'House',
    behavior: '`initialize` is answered, so that ordinary MCP clients connect with only URL and bearer.',
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
      'Clients of 2026-07-28 and of every older revision are served by their own rules; what breaks them is refused as the specification says.',
  },
  'mcp:bridge': {
    source: 'House',
    behavior: 'A client of one era uses an upstream of the other; what one of them lacks is translated or said.',
  },
  'mcp:input': {
    source: 'House',
    behavior:
      'What an upstream asks in the middle of a call reaches the client that made it, if it can answer; else the caller hears what was asked.',
  },
  'mcp:parked': {
    source: 'House',
    behavior:
      'A call whose legacy upstream asks a client of 2026-07-28 waits up to 10 minutes for what that says, good for its caller, its request and any process; when it is lost the client hears to call again.',
  },
  'mcp:long-calls': {
    source: 'House',
    behavior:
      'A call at an MCP endpoint fails after `MCP_CALL_TIMEOUT_MS`, or the `callTimeoutMs` of its connection, without a message, and after an hour; a 504 of REST names the MCP endpoint.',
  },
  'mcp:loop': {
    source: 'House',
    behavior:
      'A request that has come through this service before, or through four like it, is refused; a connection that leads back is an `error` that says so, and what to change.',
  },
  'mcp:tasks': {
    source: 'House',
    behavior:
      'A tool that a server of 2025-11-25 runs as a task only is called like any other. A client of 2025-11-25 can start and follow tasks, which belong to its account and connection; where that is not possible, a call with `task` is refused before it runs.',
  },
  'mcp:session': {
    source: 'House',
    behavior:
      '`initialize` opens a session that any process knows, good for one key and one target for 24 hours; any other id answers 404.',
  },
  'mcp:sse': {
    source: 'House',
    behavior:
      'GET without a session and without MCP-Protocol-Version opens a stream of HTTP+SSE (2024-11-05), at connections, run endpoints and namespaces.',
  },
  'mcp:resume': {
    source: 'House',
    behavior:
      'A client of 2025-06-18 or 2025-11-25 with a session resumes the stream of a call by GET with Last-Event-ID, at any process, for 5 minutes, 256 events and 1 MB; what is gone is 404. Its call goes on meanwhile.',
  },
  'mcp:own-stream': {
    source: 'House',
    behavior:
      'Log messages and updates on the stream of an upstream session reach the client whose session it is; of a shared session they reach the sole call in flight. Changes that an upstream has no stream for are not announced.',
  },
  'mcp:session-restart': {
    source: 'House',
    behavior:
      'A session that set a log level, subscribed, or declared what its client answers is 404 at a process that started later and does not know that; one of a server that restores sessions goes on, as does one without state.',
  },
  'mcp:log-level': {
    source: 'House',
    behavior:
      'A log level that a client sets is set in its session at a legacy server, before its next call and again in each new session.',
  },
  'mcp:both-eras': {
    source: 'House',
    behavior:
      'A server of both eras serves a legacy client that answers requests, sets a log level or subscribes in its legacy era, and everybody else in its modern one: each gets what it gets directly.',
  },
  'mcp:session-stream': {
    source: 'House',
    behavior: 'A session has one stream, by GET, that tells of changed lists and of the resources it subscribed to.',
  },
  'mcp:subscriptions': {
    source: 'House',
    behavior:
      '`subscriptions/listen` tells a client of 2026-07-28 what it asked for and the upstream can tell, and no more.',
  },
  'mcp:batch': {
    source: 'House',
    behavior: 'Batches of up to 100 messages are taken from clients of 2025-03-26 alone, and answered one by one.',
  },
  'mcp:vanish': {
    source: 'House',
    behavior:
      'A client that vanishes leaves nothing behind: no call, no question, no listener. A call whose stream can be resumed goes on for 5 minutes.',
  },
  'mcp:bad-request': {
    source: 'Field',
    behavior: 'A body that is no JSON or no JSON-RPC message answers 400 with a JSON-RPC error.',
  },
  'mcp:id-kept': {
    source: 'House',
    behavior: 'The answer carries the id of the request exactly as it was written, string or number of any size.',
  },
  'mcp:unknown-connection': {
    source: 'Field',
    behavior: 'An unknown or foreign connection answers 404 with a JSON-RPC error.',
  },
  'mcp:no-key': {
    source: 'House',
    behavior: 'A request without a valid key answers 401 with a JSON-RPC error and `WWW-Authenticate`.',
  },
  'mcp:upstream-error': {
    source: 'House',
    behavior: 'A JSON-RPC error of the upstream reaches the client with its code, message and data.',
  },
  'mcp:upstream-down': {
    source: 'House',
    behavior: 'An upstream that is down or too slow gives a JSON-RPC error, never status 401 or 404.',
  },
  'mcp:auth-required': {
    source: 'House',
    behavior:
      'An upstream that wants authorization never becomes our 401: `tools/call` answers an `isError` text, others a JSON-RPC error; clients that can be led to a page are led there.',
  },
  'mcp:passes-through': {
    source: 'House',
    behavior: 'Tools, resources, prompts and completion reach the client as the upstream sent them.',
  },
  'mcp:progress': {
    source: 'House',
    behavior: 'Progress of a call reaches the client that asked for it, with its own token, and no other client.',
  },
  'mcp:official-clients': {
    source: 'Field',
    behavior: 'The official MCP client, v1 and v2, lists and calls tools through the endpoint.',
  },
  // Run endpoint of a server
  'run:any-key': {
    source: 'House',
    behavior:
      '`POST /run/{slug}` and `/run/{slug}/mcp` call the current external release of a server, with any valid key.',
  },
  'run:no-key': { source: 'House', behavior: 'Without a valid key it answers 401 with a JSON-RPC error.' },
  'run:unknown': { source: 'House', behavior: 'A slug no server has answers 404 with a JSON-RPC error.' },
  'run:paths': { source: 'House', behavior: 'Other paths below the slug of an external release answer 404.' },
  'hosted:runs': {
    source: 'Spec 1, House',
    behavior:
      'A hosted release, a factory of servers or a worker, runs here: its run endpoint and connections to it serve its tools.',
  },
  'hosted:published-cli': {
    source: 'Field',
    behavior: 'What the published tool that builds hosted servers builds and publishes runs here as it is.',
    isLong: true,
  },
  'hosted:scanned': {
    source: 'Spec 1, House',
    behavior:
      'What a hosted release offers is asked of its running module; what its publisher claims otherwise is a warning in its log.',
  },
  'hosted:fails': {
    source: 'House',
    behavior: 'A module that does not start ends its release with what it said, and leaves the current release alone.',
  },
  'hosted:scan-log': {
    source: 'House',
    behavior: 'What a module prints while it is scanned stands in the log of its release.',
  },
  'hosted:config': {
    source: 'Field',
    behavior: 'Hosted code gets the configuration of each caller, with the defaults of its schema.',
  },
  'hosted:secrets': {
    source: 'Spec 1, Field',
    behavior: 'A hosted release gets the secrets of its server that it names, or all of them when it names none.',
  },
  'hosted:records': {
    source: 'Spec 1, 2.5',
    behavior: 'Console lines and exceptions of hosted code belong to the invocation during which they came.',
  },
  'hosted:renew': {
    source: 'House',
    behavior:
      'A changed secret and changed egress rules reach the running code of a server; a new slug restarts nothing.',
  },
  'hosted:swap': { source: 'House', behavior: 'No call fails while another hosted release becomes current.' },
  'hosted:stateful': {
    source: 'House',
    behavior:
      'Each client session of a stateful hosted server has an upstream session of its own; clients without sessions have one for each key.',
  },
  'hosted:session:kept': {
    source: 'House',
    behavior:
      'A caller of a stateful hosted server has the same session from every process, after restarts, after its program was killed and in later releases; nobody else has it.',
  },
  'hosted:session:shared': {
    source: 'House',
    behavior: 'Processes that call in one session at once get their own answers, and the questions of their own calls.',
  },
  'hosted:session:ended': {
    source: 'House',
    behavior:
      'A session with a stateful hosted server ends with its client’s DELETE or its connection, whichever process hears of it, and its store with it.',
  },
  'hosted:paths': {
    source: 'House',
    behavior:
      'Other paths below the slug of a hosted release go to its code, with any method, recorded, for any valid key.',
  },
  'hosted:paths-reserved': {
    source: 'House',
    behavior:
      'Paths with a segment `__smithery`, where code answers this service only, are 404 from outside however they are spelled.',
  },
  'hosted:paths-walls': {
    source: 'House',
    behavior:
      'Hosted code never sees keys and cookies of this service, sets no cookies there, and its pages run no scripts there.',
  },
  'hosted:diagnosis': {
    source: 'House',
    behavior: 'The diagnosis of a connection to a hosted server skips the network and says that it is hosted here.',
  },
  'run:get-delete': {
    source: 'House',
    behavior: 'GET with a revision and no session, and DELETE without one, answer 405 and name POST.',
  },
  'run:limits': {
    source: 'House',
    behavior: 'A message over 16 MB, one from a foreign web page and one that is no JSON-RPC are refused.',
  },
  'run:not-runnable': {
    source: 'House',
    behavior: 'A server without a successful release, or whose current one does not run here, says so and what to do.',
  },
  'run:key-kept': {
    source: 'House',
    behavior: 'Neither the caller’s key nor any header or parameter outside of the config schema reaches the upstream.',
  },
  'run:config': {
    source: 'Field',
    behavior: 'Values of the config schema go from where `x-from` says to where `x-to` says, with defaults.',
  },
  'run:config-missing': {
    source: 'Field',
    behavior:
      'Missing required values answer 409 and -32002 with `{http, missing}`, wrong ones -32602; nothing is called.',
  },
  'run:channels': {
    source: 'House',
    behavior:
      'Callers of one account who send the same values share one upstream session; others have one of their own.',
  },
  'run:renamed': {
    source: 'House',
    behavior: 'A renamed slug holds at once, within 5 s where no message arrives; the old one is unknown.',
  },
  'run:deleted': { source: 'House', behavior: 'Deleting a server ends its upstream sessions in every process.' },
  'run:new-release': {
    source: 'House',
    behavior: 'A new current release is called at once, within 5 s where no message arrives; running calls finish.',
  },
  'run:cancel': {
    source: 'House',
    behavior: 'A caller that leaves or cancels cancels its own call upstream, and no other.',
  },
  'run:progress': { source: 'House', behavior: 'Progress reaches the client that asked for it, under its own token.' },
  'run:passes-through': { source: 'House', behavior: 'Requests and answers pass byte for byte, around the id.' },
  'run:two-processes': {
    source: 'House',
    behavior: 'Every process answers, each over an upstream session of its own.',
  },
  'run:upstream-down': {
    source: 'House',
    behavior: 'A server that is down or too slow gives a JSON-RPC error that does not tell where it runs.',
  },
  'run:auth-required': {
    source: 'House',
    behavior: 'A server that wants authorization of its own is told as such, never as our 401.',
  },
  'run:official-clients': {
    source: 'House',
    behavior: 'The official MCP client, v1 and v2, uses a registered server through its run endpoint.',
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
    behavior: 'A connection to a run endpoint says in its status that the server is gone.',
  },
  'contract:published-client': {
    source: 'Field',
    behavior:
      'The published API client, newest and 0.50, works for namespaces, servers, releases, connections, tools and MCP.',
  },

  // Upstream channels
  'channel:single-flight': {
    source: 'House',
    behavior: '50 parallel first calls on a new connection give the upstream exactly one initialize.',
  },
  'channel:session-kept': { source: 'House', behavior: 'Calls of one connection share one upstream session.' },
  'channel:reinitialize': {
    source: 'House',
    behavior: 'An upstream that forgot the session is initialized once more and the callers see no error.',
  },
  'channel:ids-never-cross': {
    source: 'House',
    behavior: 'Callers that all use the same JSON-RPC id at once each get their own answer.',
  },
  'channel:cancel': {
    source: 'House',
    behavior: 'A caller that leaves cancels its call, and only its call, at the upstream.',
  },
  'channel:deadline-covers-body': {
    source: 'House',
    behavior: 'An upstream that sends headers and then stalls ends at the deadline.',
  },
  'channel:byte-cap': {
    source: 'House',
    behavior: 'An upstream answer over the byte limit ends the call with an error.',
  },
  'channel:sse': {
    source: 'House',
    behavior: 'Upstream answers as JSON and as server-sent events give the same result.',
  },
  'channel:outcome-unknown': {
    source: 'House',
    behavior: 'A `tools/call` cut after it was written is reported as outcome unknown and is not sent again.',
  },
  'channel:era': {
    source: 'House',
    behavior: 'What an upstream speaks is found out by `server/discover` first, and every kind of server is spoken to.',
  },
  'channel:era-remembered': {
    source: 'House',
    behavior: 'What an upstream speaks is found out once for all processes, and anew when it behaves otherwise.',
  },
  'channel:http-sse': {
    source: 'House',
    behavior: 'Over HTTP+SSE calls run side by side; losing the stream loses the session and what ran in it.',
  },
  'channel:modern-requests': {
    source: 'House',
    behavior:
      'A modern request carries its envelope and headers, also those a tool asks for; a mismatch is mended once.',
  },
  'channel:input-required': {
    source: 'House',
    behavior: 'Results that ask for input pass as they came; callers that cannot answer hear that input is needed.',
  },
  'channel:asks-caller': {
    source: 'House',
    behavior: 'What a server asks during a call reaches the caller who made it, if it can be asked, and nobody else.',
  },
  'channel:listen': {
    source: 'House',
    behavior: 'All listeners of an upstream share one stream, and each hears what it wants to hear.',
  },
  'channel:both-eras': {
    source: 'House',
    behavior:
      'A modern server that opens a session too is remembered as one of both eras; one that opens none serves every call in its own.',
  },
  'channel:lost-session': {
    source: 'House',
    behavior:
      'A server that answers 404 to the stream of a session has lost it: another one is opened, listened to and subscribed in, and listeners are told that lists changed.',
  },
  'channel:resume': {
    source: 'House',
    behavior: 'A legacy answer whose stream broke is taken up where it broke, without calling again.',
  },
  'channel:cache-hints': {
    source: 'House',
    behavior: 'A result is given again for as long as its server says, to the same channel, until it says otherwise.',
  },
  'channel:bearer': {
    source: 'House',
    behavior: 'A refused token is asked for once more, and the request sent once more with another one.',
  },
  'channel:headers-changed': { source: 'House', behavior: 'After PUT with new headers no call carries the old ones.' },

  // Egress guard
  'egress:private-refused': {
    source: 'House',
    behavior:
      'Every spelling of a private, loopback, link-local or reserved address is refused before a packet leaves.',
  },
  'egress:scheme': { source: 'House', behavior: 'Schemes other than http and https are refused.' },
  'egress:dns': {
    source: 'House',
    behavior:
      'A name with private addresses only is refused, and of a name with others as well no private one is dialled.',
  },
  'egress:rebinding': { source: 'House', behavior: 'The connection goes to the very address that was checked.' },
  'egress:redirect': {
    source: 'House',
    behavior: 'No redirect is followed: its target is told, and nothing is sent there, headers least of all.',
  },
  'egress:allow': {
    source: 'House',
    behavior: '`EGRESS_ALLOW` admits the ranges and hosts it lists and nothing else.',
  },
  'egress:proxy': {
    source: 'House',
    behavior:
      'With EGRESS_PROXY every public host is reached through that proxy, what EGRESS_ALLOW lists without it, and what ' +
      'this machine resolves to an internal address is refused.',
  },
  'egress:proxy:failure': {
    source: 'House',
    behavior:
      'A proxy that is away or refuses is answered with an error that names EGRESS_PROXY, without its password.',
  },

  // Running it
  'health:alive': { source: 'Field', behavior: '`GET /health` answers 200 `{status, timestamp}` without a key.' },
  'health:ready': {
    source: 'House',
    behavior: '`GET /ready` answers 200 when database and queue are reached and 503 when one is not, without a key.',
  },
  'limits:account-share': {
    source: 'House',
    behavior:
      'No account can take all places of a process: of tunnels, open streams, links and looks at connections it has a share.',
  },
  'limits:requests': {
    source: 'House',
    behavior:
      'Requests of a key, of an account, and of an address without a valid key beyond their limit in a minute are 429 in the body of their path, with `Retry-After`.',
  },
  'limits:headers': {
    source: 'House',
    behavior: 'Answers carry `RateLimit-Policy` and `RateLimit` with the limits that count and what is left of them.',
  },
  'limits:failures': {
    source: 'House',
    behavior:
      'Many wrong keys from an address are 429 with a growing `Retry-After`, answered at once; a valid key from there passes.',
  },
  'limits:calls-at-once': {
    source: 'House',
    behavior: 'Calls that an account has at work at once beyond its limit are 429 `rate_limited` and not sent.',
  },
  'limits:usage': {
    source: 'House',
    behavior: '`GET /accounts/me/usage` answers each limit of the account and what is used of it.',
  },
  'limits:overrides': {
    source: 'House',
    behavior: 'The operator sets limits of single accounts with `PATCH /accounts/{id}/limits`.',
  },
  'limits:quotas': {
    source: 'House',
    behavior:
      'What exceeds a number or size of an account or namespace is 429 in the body of its path; what exists can still be changed.',
  },
  'limits:log-share': {
    source: 'House',
    behavior: 'An account that writes more logs in a day than its share loses its own records, and nothing of others.',
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
    behavior: 'Session data of a program that nobody has called for longer than sessions live is deleted.',
  },
  'metrics:samples': {
    source: 'House',
    behavior: 'The dashboard and the alert rules in `docker` name metrics that the service has.',
  },
  'kubernetes:valid': {
    source: 'House',
    behavior: 'The schemas of Kubernetes accept each object in `docker/kubernetes`.',
  },
  'kubernetes:confined': {
    source: 'House',
    behavior:
      'Containers in `docker/kubernetes` run without root, capabilities, privilege escalation or a writable root file system.',
  },
  'kubernetes:secrets': {
    source: 'House',
    behavior:
      'Host pods of `docker/kubernetes` hold Postgres, Redis, S3 and `ENCRYPTION_KEYS`, and no other secret of the service.',
  },
  'kubernetes:rendered': {
    source: 'House',
    behavior:
      'What kustomize renders of `docker/kubernetes` is complete, and processes with its settings run hosted code.',
  },
  'kubernetes:settings': {
    source: 'House',
    behavior: 'The service accepts the settings of `docker/kubernetes` in each role.',
  },
  'metrics:access': {
    source: 'House',
    behavior:
      '`GET /metrics` is off until METRICS_TOKEN is set, and answers 401 to whoever does not send it; API keys do not count.',
  },
  'metrics:figures': {
    source: 'House',
    behavior: 'The metrics show what this process serves, holds open, queues and drops, in the Prometheus text format.',
  },
  'metrics:secrecy': {
    source: 'House',
    behavior: 'No metric names a tenant, an address, a tool or a key, and nothing tenants do adds a series.',
  },
  'http:cors': {
    source: 'House',
    behavior:
      'Scripts of origins in CORS_ORIGINS use REST and MCP endpoints with a key; scripts of other origins, and scripts on pages, do not.',
  },
  'http:no-page': {
    source: 'House',
    behavior:
      'No answer but a page runs, loads or shows anything in a browser; an answer with an API key is not stored.',
  },
  'docs:safe': {
    source: 'House',
    behavior: '`/docs` keeps no key, runs no scripts but its own and shows in no frame.',
  },
  'docs:page': { source: 'House', behavior: '`/docs` is open without a key, and `GET /` leads a browser there.' },
  'docs:try-it-out': {
    source: 'House',
    behavior: 'The first five steps work from the docs page with the key entered there, the metadata filter included.',
  },
  'log:redacted': {
    source: 'House',
    behavior: 'No log line holds an API key, an Authorization header or a connection header.',
  },
  'log:request-id': {
    source: 'House',
    behavior: 'All log lines of one request share a request id.',
  },
  'health:stale-reads': {
    source: 'House',
    behavior:
      'Calls use what was read in the 5 s before the database stopped answering, for STALE_READ_MS. A revocation that is heard counts at once.',
  },
  'health:clock': {
    source: 'House',
    behavior: 'A clock that is off is named in `/ready`, in a metric and in the error of a call that fails for it.',
  },
  'service:fuzz': {
    source: 'House',
    behavior:
      'No input gets an undocumented status, an undocumented body or a 500; what was answered, what is listed and what the quotas count agree afterwards.',
  },
  'service:canaries': {
    source: 'House',
    behavior:
      'A secret is found in no answer but the one that creates it, in no log line, metric, job, table or file, plain or encoded.',
  },
  'health:storage': {
    source: 'House',
    behavior: 'A full disk is answered 507, and is told in `/ready` and a metric.',
  },
  'health:embedded-restart': {
    source: 'House',
    behavior: 'An embedded Postgres that dies is started again; if that fails, the process ends with code 1.',
  },
  'health:host-restart': {
    source: 'House',
    behavior: 'A host that restarts takes over the row of its former process at once.',
    isLong: true,
  },
  'log:repeats': { source: 'House', behavior: 'A warning that repeats is logged once a minute, with a count.' },
  'log:one-level': { source: 'House', behavior: 'No log record carries two levels.' },
  'log:process': {
    source: 'House',
    behavior:
      'Log lines in JSON name role, host and version of their process; `slipway_build_info` has version and commit.',
  },
  'log:names': {
    source: 'House',
    behavior: 'Log lines about releases and connections name the qualified name and the account.',
  },
  'log:access': { source: 'House', behavior: 'With ACCESS_LOG every request is logged at info, with its account.' },
  'start:open-host': {
    source: 'House',
    behavior: 'With HOST=0.0.0.0 and without PUBLIC_URL links say http://localhost:PORT, and a warning says so.',
  },
  'stop:drain': {
    source: 'House',
    behavior:
      'After a stop signal `/ready` is 503 for DRAIN_MS while the process serves and keeps no connection; a second signal ends it at once.',
  },
  'stop:rolling': {
    source: 'House',
    isLong: true,
    behavior:
      'Behind the sample of nginx, a restart of each process in turn fails no call that lasts up to 5 s, and repeats none.',
  },
  'stop:restarting': {
    source: 'House',
    behavior: 'A call that does not end within 25 s of the stop is answered with an error that says "restarting".',
  },
  'start:loaded-code': {
    source: 'House',
    behavior:
      'A process imports no code of roles and features that are off, and no packages for rare work, such as compilers, before their first use.',
  },
  'start:first-key': {
    source: 'House',
    behavior: 'The very first start prints an operator key that works; later starts print none and keep all data.',
  },
  'start:bad-setting': {
    source: 'House',
    behavior: 'Bad settings end the start with one clear sentence each, all at once, and exit code 1.',
  },
  'start:newer-database': {
    source: 'House',
    behavior:
      'A database with a migration that this version does not know ends the start with one clear sentence that names it, and exit code 1.',
  },
  'backup:restore': {
    source: 'House',
    behavior:
      '`slipway backup` of a running service and `slipway restore` onto an empty database and data folder keep every row, stored file, session of hosted code and secret; a place with content is refused.',
  },
  'backup:damaged': {
    source: 'House',
    behavior:
      '`slipway restore` refuses a backup that is damaged, incomplete or of a newer version before it writes, and names the file.',
  },
  'backup:keys': {
    source: 'House',
    behavior:
      'A backup holds encryption keys only with `--with-keys`; a restore without them names those that it needs.',
  },
  'move:counts': {
    source: 'House',
    behavior:
      '`slipway move` copies the embedded database to `DATABASE_URL` and files to `BLOB_URL` while the service is stopped, with the same number of rows in each table.',
    isLong: true,
  },
  'doctor:checks': {
    source: 'House',
    behavior:
      '`slipway doctor` checks settings, database, migrations, keys, queue, clock, storage, isolation and egress: one line each with the next step, exit code 1 when one failed, and no secret.',
  },
  'start:secret-file': {
    source: 'House',
    behavior:
      'A secret setting may stand in the file that NAME_FILE names; both set, or no readable value, is refused.',
  },
  'compose:scale': {
    source: 'House',
    behavior: 'The compose file runs several processes of the service behind its proxy.',
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
  'start:busy-port': {
    source: 'House',
    behavior: 'A busy port ends the start with one clear sentence and exit code 1.',
  },
  'start:unwritable-folder': {
    source: 'House',
    behavior: 'A data folder that cannot be written ends the start with one clear sentence and exit code 1.',
  },
  'stop:graceful': {
    source: 'House',
    behavior: 'A stop signal lets running requests finish, ends upstream sessions and stops the embedded database.',
  },
  'stop:killed': {
    source: 'House',
    behavior:
      'After SIGKILL of the service no embedded database process stays behind, and the next start keeps the data.',
  },
} as const satisfies Record<string, Requirement>;
