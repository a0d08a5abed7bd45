import type { Requirement } from '../requirements.js';

/** Rules of connections beyond the interface: logs, the namespace as one server, diagnosis, triggers. */
export const connectionInsight = {
  'log:shape': {
    source: 'House',
    behavior:
      '`GET …/{connectionId}/logs` answers 200 `{invocations, total}` with tool calls over REST and MCP requests, newest first, each as in Spec 2.5 with the MCP method, the tool and its timing.',
  },
  'log:failures': {
    source: 'House',
    behavior:
      'The log contains calls that failed, were denied (authorization, values, unknown tools, no tunnel) or were cancelled, with the reason; a tool result with `isError: true` has the outcome `toolError`, a JSON-RPC error `rpcError`.',
  },
  'log:query': {
    source: 'House',
    behavior:
      '`limit` is 1 to 100 (default 20); `from`, `to`, `search`, `outcome` and `tool` must all match, and `total` counts what matches. A value of another form answers 400 `validation_error`.',
  },
  'log:nothing-secret': {
    source: 'House',
    behavior: 'A log contains no arguments, results, query strings, headers or texts of upstream errors.',
  },
  'log:bounded': {
    source: 'House',
    behavior:
      'The log of a connection shows its newest 1,000 calls; each process records the first 1,000 successful calls of a connection in a minute and then ten a second, and of the others up to 1 Mi characters. The answer has the number of calls that were left out. Calls that wait for the database are bounded in number and size.',
  },
  'log:own': {
    source: 'House',
    behavior:
      "The log of another owner's connection answers as that of a missing one, and a log is deleted with its connection.",
  },

  'union:all-connections': {
    source: 'House',
    behavior:
      'The MCP endpoint `/connect/{namespace}/.mcp` offers the tools, prompts and resources of all connections, tools named `connectionId__tool`, to the MCP clients of both generations; results pass byte for byte.',
  },
  'union:names': {
    source: 'House',
    behavior:
      'Every listed tool name matches `^[a-zA-Z0-9_-]{1,64}$`; calls accept it, `connectionId.tool`, and the own name of a tool where it is unique; logs contain the name that the server uses.',
  },
  'union:separator': {
    source: 'House',
    behavior:
      'With `separator=.` names keep the spelling of the servers. An ambiguous name means the connection with the longest id; lists omit and report the tools that it shadows. An unknown separator or mode answers 400.',
  },
  'union:links': {
    source: 'House',
    behavior: 'A resource URI in a result or an update can be read under that URI.',
  },
  'union:apps': {
    source: 'House',
    behavior:
      'A namespace declares the extensions of its connections, and answers a resource by the URI that the `_meta` of a listed tool names; where several connections have the URI, it lists a `ui://` URI for each.',
  },
  'union:instructions': {
    source: 'House',
    behavior:
      'The instructions of the servers are joined under the ids of their connections: up to 4 KB of each, 16 KB in total.',
  },
  'union:capabilities': {
    source: 'House',
    behavior: 'Lists hold the tools that a server offers to clients with the capabilities of the caller.',
  },
  'union:any-method': {
    source: 'House',
    behavior:
      '`logging/setLevel` and methods without a connection name work if one of the connections supports them. The log level of a call is sent with it to servers of 2026-07-28 only.',
  },
  'union:failures': {
    source: 'House',
    behavior:
      'A failed, unresponsive or unauthorized connection does not fail the list: the list names its state and message, and connections that wait for their user are not contacted.',
  },
  'union:slow-member': {
    source: 'House',
    behavior:
      'A connection whose last list or failure is known delays a list of tools by half a second at most; its tools of the last time are listed, and a list change follows if they differ.',
  },
  'union:pages': {
    source: 'House',
    behavior: 'A list of more than 100 connections continues by cursor, and all pages together contain each tool once.',
  },
  'union:search': {
    source: 'House',
    behavior:
      'With `mode=search` three tools replace all others: a search over a thousand tools has a stable order, returns full descriptions, and calls return unchanged results.',
  },
  'union:list-changed': {
    source: 'House',
    behavior:
      'Listeners receive a list change when a connection is added or removed, and when an upstream announces one. After the stream of a connection ended its resources are reported as updated.',
  },
  'union:own': {
    source: 'House',
    behavior:
      'Only the owner of a namespace can use its endpoint; foreign and missing namespaces have the same answer, and no name reaches a connection of another namespace.',
  },

  'diagnosis:steps': {
    source: 'House',
    behavior:
      '`GET …/{connectionId}/diagnosis` checks the path to the MCP server of a url or registry connection step by step, with one line of evidence for each step, and ends with a remedy. A step that fails is broken, those after it are skipped, and no tool is called. Of other targets it states the kind and if they respond.',
  },
  'diagnosis:session-in-use': {
    source: 'House',
    behavior:
      'A diagnosis lists the tools in the session that calls use, also where a new session would work, and updates the status of the connection.',
  },
  'diagnosis:nothing-secret': {
    source: 'House',
    behavior:
      'A diagnosis contains no value that the connection sends, no answer of the server and no internal address; for a registry server it omits the host.',
  },
  'diagnosis:bounded': {
    source: 'House',
    behavior: 'A diagnosis ends within 20 seconds, and concurrent requests for one connection share it.',
  },
  'diagnosis:own': {
    source: 'House',
    behavior: "The diagnosis of another owner's connection answers as that of a missing one.",
  },

  'trigger:validation': {
    source: 'Field',
    behavior:
      'A delivery URL that is not https or that egress rules refuse, a malformed secret and params over 16 KB answer 400 `validation_error`, and nothing is sent.',
  },
  'trigger:subscribe': {
    source: 'Field',
    behavior:
      'Subscribing forwards params, URL and secret and answers `{id, refreshBefore}`; the id is `trg_…` and stable for the same key.',
  },
  'trigger:refused': {
    source: 'House',
    behavior:
      'A trigger that the server does not have answers 404; a refusal of the server is reported without the secret.',
  },
  'trigger:own': {
    source: 'House',
    behavior: "The triggers of another owner's connection answer as those of a missing one.",
  },
  'trigger:older': {
    source: 'Field',
    behavior: 'The older subscription routes answer an empty list, and create or delete nothing.',
  },
} as const satisfies Record<string, Requirement>;
