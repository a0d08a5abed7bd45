import type { Requirement } from '../requirements.js';

/** What the service tells of connections beyond the interface: logs, the namespace as one server, diagnosis, triggers. */
export const connectionInsight = {
  'log:shape': {
    source: 'House',
    behavior:
      '`GET …/{connectionId}/logs` answers 200 `{invocations, total}`, each as in Spec 2.5 with the MCP method, the tool and its timing.',
  },
  'log:rest-and-mcp': {
    source: 'House',
    behavior: 'Every tool call by REST and every MCP request of a connection is in its log, newest first.',
  },
  'log:failures': {
    source: 'House',
    behavior:
      'Calls that failed, were denied (authorization, values, unknown tools, no tunnel) or cancelled are in the log, with why.',
  },
  'log:query': {
    source: 'House',
    behavior:
      '`limit` is 1 to 100 (default 20); `from`, `to`, `search`, `outcome` and `tool` must all match, and `total` counts what matches.',
  },
  'log:query-invalid': {
    source: 'House',
    behavior: 'A limit, time or outcome of another form answers 400 `validation_error`.',
  },
  'log:nothing-secret': {
    source: 'House',
    behavior: 'No arguments, results, query strings, headers or words of an upstream error are in a log.',
  },
  'log:bounded': {
    source: 'House',
    behavior:
      'A connection keeps its newest 1,000 calls of the last 7 days; a flood of one is cut, not that of others.',
  },
  'log:own': {
    source: 'House',
    behavior: "Another owner's log and that of a missing connection look alike, and a log goes with its connection.",
  },

  'union:all-connections': {
    source: 'House',
    behavior:
      'The MCP endpoint `/connect/{namespace}/.mcp` offers the tools, prompts and resources of all connections, tools named `connectionId.tool`.',
  },
  'union:result-unchanged': {
    source: 'House',
    behavior: 'A call reaches the connection its name begins with, and its result passes byte for byte.',
  },
  'union:official-clients': {
    source: 'House',
    behavior: 'The published MCP clients of both generations use the namespace endpoint.',
  },
  'union:separator': {
    source: 'House',
    behavior: 'With `separator=__` no name holds a dot, and every listed name is called as that tool.',
  },
  'union:ambiguous': {
    source: 'House',
    behavior:
      'A name that may be read in two ways means the connection with the longest id; what that shadows is not listed, and the list says so.',
  },
  'union:failures': {
    source: 'House',
    behavior:
      'A connection that fails, hangs or waits for its user fails nothing: the list names it with state and message, and those that wait are not contacted.',
  },
  'union:pages': {
    source: 'House',
    behavior: 'A list goes on by cursor beyond 100 connections, and all pages together hold each tool once.',
  },
  'union:search': {
    source: 'House',
    behavior:
      'With `mode=search` three tools stand for all: a thousand are searched in the same order each time, described whole and called with an unchanged result.',
  },
  'union:list-changed': {
    source: 'House',
    behavior: 'A listener hears that lists change when a connection comes or goes, and when an upstream says so.',
  },
  'union:own': {
    source: 'House',
    behavior:
      "A namespace's endpoint is its owner's; foreign and missing ones look alike, and no name reaches into another.",
  },
  'union:bad-query': {
    source: 'House',
    behavior: 'A separator or mode the endpoint does not know answers 400.',
  },
} as const satisfies Record<string, Requirement>;
