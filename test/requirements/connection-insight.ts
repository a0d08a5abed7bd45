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
} as const satisfies Record<string, Requirement>;
