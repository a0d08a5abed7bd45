import type { Requirement } from '../requirements.js';

/** Rules of connections beyond the interface: logs, the namespace as one server, diagnosis, triggers. */
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
      'The log of a connection shows its newest 1,000 calls; 1,000 of one connection are recorded a minute in each process. What waits for the database is bounded, also by its size.',
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
  'union:resource-updates': {
    source: 'House',
    behavior: 'Slipway listens again when the stream of a connection ends, and its resources then count as updated.',
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

  'diagnosis:steps': {
    source: 'House',
    behavior:
      '`GET …/{connectionId}/diagnosis` walks the way to the MCP server of a url or registry connection step by step, each with one line of evidence, and ends with what to do.',
  },
  'diagnosis:stops': {
    source: 'House',
    behavior: 'The step that fails is the one that is broken, what lies behind it is skipped, and no tool is called.',
  },
  'diagnosis:other-targets': {
    source: 'House',
    behavior: 'For an uplink, a mock and a source it says what they are and whether they answer.',
  },
  'diagnosis:status': { source: 'House', behavior: 'A diagnosis brings the status of the connection up to date.' },
  'diagnosis:nothing-secret': {
    source: 'House',
    behavior:
      'No value a connection sends, no answer of the server and no internal address is in a diagnosis; of a registry server not even its host.',
  },
  'diagnosis:bounded': {
    source: 'House',
    behavior: 'It ends within 20 seconds, and a connection has one at a time: who asks meanwhile is given the same.',
  },
  'diagnosis:own': {
    source: 'House',
    behavior: "Another owner's connection and a missing one look alike.",
  },

  'trigger:validation': {
    source: 'Field',
    behavior:
      'A delivery URL that is not https or that may not be dialled, a secret of another form and params beyond 16 KB answer 400 `validation_error`, and nothing is sent.',
  },
  'trigger:subscribe': {
    source: 'Field',
    behavior:
      'Subscribing passes params, URL and secret on and answers `{id, refreshBefore}`; the id is `trg_…` and the same for the same key.',
  },
  'trigger:refused': {
    source: 'House',
    behavior: 'A trigger the server does not have is 404; what the server refuses is told without the secret.',
  },
  'trigger:own': { source: 'House', behavior: "Another owner's triggers and missing ones look alike." },
  'trigger:older': {
    source: 'Field',
    behavior: 'The older subscriptions answer an empty list, and nothing is made or deleted there.',
  },
} as const satisfies Record<string, Requirement>;
