import type { Requirement } from '../requirements.js';

/** The registry beyond the specification: lists, settings, secrets, icons, and reading without a key. */
export const servers = {
  // GET /servers
  'server:list:shape': {
    source: 'Field',
    behavior: '`GET /servers` answers `{servers, pagination}` with every member of a server in a list.',
  },
  'server:list:page': {
    source: 'Field',
    behavior: 'Pages of servers hold each one once, the most used first, and a page past the end is an empty 200.',
  },
  'server:list:deep': {
    source: 'House',
    behavior:
      'A page of servers far down is read from a mark near it and holds what counting from the first one gives.',
  },
  'server:list:seed': {
    source: 'Field',
    behavior: '`seed` gives a list of servers an order of its own, the same on every page.',
  },
  'server:list:filters': { source: 'Field', behavior: 'Every filter given for a list of servers must match.' },
  'server:list:unlisted': {
    source: 'Field',
    behavior: 'An unlisted server is listed to its owner alone, who asks for the own namespace or account.',
  },
  'server:list:fields': { source: 'Field', behavior: '`fields` leaves only the members of servers it names.' },
  'server:list:namespace-only': {
    source: 'Field',
    behavior: 'A namespace-only server is listed and found with an empty `slug`.',
  },
  'server:search:ranked': {
    source: 'Field',
    behavior: '`q` ranks by where the words are: name, display name, description, names of tools.',
  },
  'server:search:exact-first': {
    source: 'House',
    behavior: 'A server whose name is what was searched for comes first, however many others have the word.',
  },
  'server:search:words': {
    source: 'House',
    behavior: 'A search finds half-written words, other forms of a word, and parts of names, those of tools included.',
  },
  'server:search:typos': { source: 'House', behavior: 'A search finds names whose words were misspelt.' },
  'server:use-count': {
    source: 'House',
    behavior:
      '`useCount` grows by the connections made to a server and the calls through it, of all processes together.',
  },
  'namespace:list:fields': { source: 'Field', behavior: '`fields` leaves only the members of namespaces it names.' },

  // Settings
  'server:update:changes': {
    source: 'Field',
    behavior: '`PATCH /servers/{qualifiedName}` changes what the body gives and keeps the rest; null clears.',
  },
  'server:update:invalid': {
    source: 'Field',
    behavior: 'A PATCH with a wrong value answers 400 `{error}` and changes nothing; URLs are http or https.',
  },
  'server:update:foreign': {
    source: 'Field',
    behavior: "Changing, moving or giving an icon to another owner's server answers 403 and does nothing.",
  },
  'server:verified': {
    source: 'House',
    behavior: 'Only the operator says whether a server is verified.',
  },
  'server:transfer:moved': {
    source: 'Field',
    behavior:
      '`POST …/transfer` moves a server with all it has to another namespace of the caller, under `targetSlug` or its name.',
  },
  'server:transfer:refused': {
    source: 'Field',
    behavior:
      "A server cannot be moved to a missing or foreign namespace (404, 403) or onto another server's name (409).",
  },
  'server:domain:managed': {
    source: 'Field',
    behavior: 'Every server has one domain, `managed`, whose `url` is its run endpoint and which its owner can rename.',
  },
  'server:domain:taken': {
    source: 'Field',
    behavior: "A subdomain of another server, or one that speaks for another owner's namespace, answers 409.",
  },
  'server:secret:never-returned': {
    source: 'Field',
    behavior: 'Secrets are listed by name; their values are in no answer and encrypted in the database.',
  },
  'server:secret:set': { source: 'Field', behavior: 'PUT of a secret creates or replaces it; DELETE removes it.' },
  'server:secret:limits': {
    source: 'House',
    behavior: 'Secrets have names that can be bound, up to 16,384 characters, and a server up to 100 of them.',
  },
  'server:owner-only': {
    source: 'Field',
    behavior: 'Secrets and domains of a foreign server answer 404 `{error: "Server not found"}`, as of a missing one.',
  },

  // Icons
  'icon:upload:kept': {
    source: 'Field',
    behavior: '`PUT …/icon` keeps one PNG, JPEG, GIF, WebP or SVG image in a form, judged by its bytes alone.',
  },
  'icon:upload:refused': {
    source: 'Field',
    behavior: 'An upload of anything else, of none or of several files answers 400 `{error}` and keeps the old icon.',
  },
  'icon:upload:wins': {
    source: 'House',
    behavior: 'An uploaded icon goes before the `iconUrl` its owner set, and that before the icon the server names.',
  },
  'icon:delete': { source: 'Field', behavior: '`DELETE …/icon` removes the icon; without one it answers 404.' },
  'icon:harmless': {
    source: 'House',
    behavior: 'An icon is served with its true type, `nosniff` and a sandboxing policy.',
  },
  'icon:cached': { source: 'House', behavior: 'An icon carries an ETag, and `If-None-Match` with it answers 304.' },
  'icon:adopted': {
    source: 'House',
    behavior:
      'The icon a server names of itself is fetched through the egress guard, from three candidates and three redirects at most.',
  },
  'link:signed': {
    source: 'House',
    behavior: 'A signed link opens its own path without a key until it expires; changed or for another path it is 403.',
  },

  // Reading without a key
  'public-reads:on': {
    source: 'Field',
    behavior: 'With `PUBLIC_READS=true` servers and icons are read without a key, also with an empty bearer.',
  },
  'public-reads:wrong-key': { source: 'Field', behavior: 'A wrong key is refused also where none is needed.' },
  'public-reads:nothing-else': {
    source: 'House',
    behavior: 'Without a key nothing can be written, and nothing be read that belongs to an owner alone.',
  },

  // Changes of a release for its callers
  'contract:list': {
    source: 'House',
    behavior:
      '`GET /servers/{qualifiedName}/changes` tells, newest first and in pages, what each release that became current changed for callers.',
  },
  'contract:access': {
    source: 'House',
    behavior: 'What changed of a server is readable by whoever may read the server.',
  },
  'contract:release-log': {
    source: 'House',
    behavior: 'The log of a release names what it changes for callers; what breaks them is a warning.',
  },
  'contract:log-bounded': {
    source: 'House',
    behavior: 'Changes take at most 50 lines of a release log, the worst first.',
  },
  'contract:promote': {
    source: 'House',
    behavior: 'Going back to an earlier release is a change for callers too, and is listed.',
  },
  'contract:hash': {
    source: 'House',
    behavior:
      'Releases whose tools, resources and prompts mean the same have the same hash and no changes, however they are written.',
  },
  'contract:tools': { source: 'House', behavior: 'A removed tool is breaking, an added one compatible.' },
  'contract:texts': {
    source: 'House',
    behavior: 'A changed description, title or annotation is risky: models act by it.',
  },
  'contract:inputs': {
    source: 'House',
    behavior: 'A change of an input schema is compatible only when what callers could send is still taken.',
  },
  'contract:outputs': {
    source: 'House',
    behavior: 'A change of an output schema is compatible only when what readers could rely on still holds.',
  },
  'contract:others': { source: 'House', behavior: 'Resources, templates and prompts are compared like tools.' },

  // Scanning what is published again
  'rescan:changes': {
    source: 'House',
    behavior:
      'A server that changes under its current release is found out by another scan: what changed stands in the log of the release and under changes, and the server shows what it offers now. The release stays SUCCESS.',
  },
  'rescan:background': {
    source: 'House',
    behavior:
      'The current releases of servers that run elsewhere are scanned again every RELEASE_RESCAN_HOURS, give or take a tenth; with 0 only when somebody asks. A scan that finds nothing new leaves no trace.',
  },
  'rescan:asked': {
    source: 'House',
    behavior:
      '`POST …/releases/{id}/rescan` answers 202 and has the current release scanned at once, hosted ones too. A bundle is 400, a release that is not current 409.',
  },
  'rescan:access': {
    source: 'House',
    behavior: 'Only the owner of a server has it scanned; for others its releases are missing.',
  },
  'rescan:failure': {
    source: 'House',
    behavior:
      'A scan that fails takes nothing down and is told once, however often it fails, with pauses that double; so is that the server answers again.',
  },
  'rescan:authorization': {
    source: 'House',
    behavior:
      'A server that wants authorization is scanned with what its owner authorized, and never with less; refused, that is told once and nothing changes.',
  },
  'rescan:credentials': {
    source: 'House',
    behavior:
      'A release that was scanned with scanCredentials is scanned again only when they are sent again, since they are not kept.',
  },
  'rescan:security': {
    source: 'House',
    behavior:
      'A server that no longer passes the security check is told of as an error and as a breaking change, and `security.scanPassed` is false. It is called as before; the registry shows what passed, until it passes again.',
  },
  'rescan:shared': {
    source: 'House',
    behavior: 'Servers at one URL to which nobody’s credentials are sent share a scan.',
  },
  'rescan:once': {
    source: 'House',
    behavior:
      'Each scan is made by one process; what a process that died had in hand is scanned by another one, and one that stops gives it back at once.',
  },
  'rescan:superseded': {
    source: 'House',
    behavior:
      'A scan that ends after another release became current, or after its server was deleted, changes nothing.',
  },
  'rescan:bounded': {
    source: 'House',
    behavior: 'Scans leave at most 500 lines in the log of a release, the newest; those of its pipeline stay.',
  },
  'rescan:caches': {
    source: 'House',
    behavior:
      'Whoever calls a server sees its new tools as soon as they were found out, at its run endpoint and by connections, in a session that goes on.',
  },
} as const satisfies Record<string, Requirement>;
