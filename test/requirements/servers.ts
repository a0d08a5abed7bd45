import type { Requirement } from '../requirements.js';

/** The registry beyond the specification: lists, settings, secrets, icons, and reading without a key. */
export const servers = {
  // GET /servers
  'server:list:shape': {
    source: 'Field',
    behavior: '`GET /servers` answers `{servers, pagination}` with all members of a server in a list.',
  },
  'server:list:page': {
    source: 'Field',
    behavior:
      'Pages of servers contain each server once, the most used first, and a page past the end is an empty 200.',
  },
  'server:list:seed': {
    source: 'Field',
    behavior: '`seed` shuffles a list of servers in an order that is the same on every page.',
  },
  'server:list:filters': {
    source: 'Field',
    behavior: 'A list of servers contains only those that match every filter.',
  },
  'server:list:unlisted': {
    source: 'Field',
    behavior: 'Only its owner sees an unlisted server in lists, with a filter for the own namespace or account.',
  },
  'server:list:fields': { source: 'Field', behavior: '`fields` selects the members of servers.' },
  'server:list:namespace-only': {
    source: 'Field',
    behavior: 'A namespace-only server is listed and found with an empty `slug`.',
  },
  'server:search:ranked': {
    source: 'Field',
    behavior: '`q` ranks matches by place: name, display name, description, names of tools.',
  },
  'server:search:tolerant': {
    source: 'House',
    behavior:
      'A server whose name equals the search text is first. A search also matches prefixes of words, inflected forms, parts of names, also names of tools, and names in spite of typos.',
  },
  'server:use-count': {
    source: 'House',
    behavior: '`useCount` counts the connections created to a server and the calls through it, in all processes.',
  },
  'namespace:list:fields': { source: 'Field', behavior: '`fields` selects the members of namespaces.' },

  // Settings
  'server:update:changes': {
    source: 'Field',
    behavior: '`PATCH /servers/{qualifiedName}` changes the given members and keeps the others; null clears.',
  },
  'server:update:invalid': {
    source: 'Field',
    behavior: 'A PATCH with an invalid value answers 400 `{error}` and changes nothing; URLs are http or https.',
  },
  'server:body:misspelt': {
    source: 'House',
    behavior:
      'PUT and PATCH of servers and of their settings answer 400 for an unknown member that is near a known one, with both names, ' +
      'and change nothing. Members that are near none are ignored where a body is not closed.',
  },
  'server:update:foreign': {
    source: 'Field',
    behavior: "Changing, moving or giving an icon to another owner's server answers 403 and changes nothing.",
  },
  'server:verified': {
    source: 'House',
    behavior: 'Only the operator sets whether a server is verified.',
  },
  'server:transfer:moved': {
    source: 'Field',
    behavior:
      '`POST …/transfer` moves a server with everything it owns to another namespace of the caller, under `targetSlug` or its name.',
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
    behavior: "A subdomain of another server, or one with the name of another owner's namespace, answers 409.",
  },
  'server:secret:never-returned': {
    source: 'Field',
    behavior: 'Secrets are listed by name; their values are in no answer and encrypted in the database.',
  },
  'server:secret:set': { source: 'Field', behavior: 'PUT of a secret creates or replaces it; DELETE removes it.' },
  'server:secret:limits': {
    source: 'House',
    behavior:
      'Names of secrets are valid binding names, values have up to 16,384 characters, and a server has up to 100 secrets.',
  },
  'server:owner-only': {
    source: 'Field',
    behavior: 'Secrets and domains of a foreign server answer 404 `{error: "Server not found"}`, as of a missing one.',
  },

  // Icons
  'icon:upload:kept': {
    source: 'Field',
    behavior:
      '`PUT …/icon` stores one PNG, JPEG, GIF, WebP or SVG image of a form; its bytes alone determine the type.',
  },
  'icon:upload:refused': {
    source: 'Field',
    behavior:
      'An upload of another type, without a file or with several files answers 400 `{error}` and keeps the old icon.',
  },
  'icon:upload:wins': {
    source: 'House',
    behavior:
      'An uploaded icon has precedence over the `iconUrl` of the owner, and that over the first icon that the server announces, which is fetched under the egress rules, with at most three redirects.',
  },
  'icon:delete': { source: 'Field', behavior: '`DELETE …/icon` removes the icon; without one it answers 404.' },
  'icon:harmless': {
    source: 'House',
    behavior:
      'An icon is served with its actual type, `nosniff`, a sandboxing policy and an ETag; a matching `If-None-Match` answers 304.',
  },
  'link:signed': {
    source: 'House',
    behavior:
      'A signed link opens its own path without a key until it expires; a changed one, or one for another path, answers 403.',
  },

  // Reading without a key
  'public-reads:on': {
    source: 'Field',
    behavior: 'With `PUBLIC_READS=true` servers and icons can be read without a key, also with an empty bearer.',
  },
  'public-reads:wrong-key': { source: 'Field', behavior: 'A wrong key is refused also on routes that need no key.' },
  'public-reads:nothing-else': {
    source: 'House',
    behavior: 'Without a key no write is possible, and no read of data of an owner.',
  },

  // Private servers
  'private:hidden': {
    source: 'House',
    behavior:
      'To everybody but its owner and those with a grant a private server looks like a missing one: status, body, headers, lists, ' +
      'totals, downloads, the run endpoint, namespaces and connections.',
  },
  'private:granted': {
    source: 'House',
    behavior: 'A grant of `call` lets an account find and call a private server, one of `manage` also change it.',
  },
  'private:ends': {
    source: 'House',
    behavior:
      'When a server becomes private, streams, sessions and connections of accounts without a grant end within 5 s in every process.',
  },
  'private:scopes': {
    source: 'House',
    behavior:
      'A key with scopes calls run endpoints, lists private servers and makes connections to them only in the namespaces of its scopes.',
  },
  'private:signed': {
    source: 'House',
    behavior: 'A signed link to the icon or bundle of a private server shows it until the link expires.',
  },
  'private:settable': {
    source: 'House',
    behavior:
      '`visibility` is set at creation, by a change and at publish, and shown with the server. `DEFAULT_VISIBILITY` is that of new servers whose creator sends none.',
  },

  // The page about the specification
  'contract:page': {
    source: 'House',
    behavior:
      '`docs/contract.md` names each specified member that an answer has as null or not at all, and answers what the specification ' +
      'does not show.',
  },

  // Changes of a release for its callers
  'contract:list': {
    source: 'House',
    behavior:
      '`GET /servers/{qualifiedName}/changes` lists, newest first and in pages, what each release changed for callers when it became current, a return to an earlier one included, to whoever may read the server. Equivalent releases have the same hash and no changes, however they are written.',
  },
  'contract:release-log': {
    source: 'House',
    behavior:
      'The log of a release lists up to 50 of its changes for callers, the most severe first; breaking ones are warnings. Scans keep at most 500 lines there, the newest.',
  },
  'contract:tools': {
    source: 'House',
    behavior:
      'A removed tool, resource, template or prompt is breaking, an added one compatible; a changed description, title or annotation is risky, because models act on it.',
  },
  'contract:inputs': {
    source: 'House',
    behavior:
      'A change of an input schema is compatible only if it accepts all inputs that were valid, one of an output schema only if all its outputs satisfy the previous schema.',
  },

  // Scanning what is published again
  'rescan:changes': {
    source: 'House',
    behavior:
      'A rescan detects a server that changed under its current release: the log of the release and its changes list the differences, and the server shows what it offers now. The release stays SUCCESS.',
  },
  'rescan:background': {
    source: 'House',
    behavior:
      'The current releases of external servers are scanned again every RELEASE_RESCAN_HOURS, plus or minus a tenth; with 0 only on request. A scan without a difference is not recorded.',
  },
  'rescan:asked': {
    source: 'House',
    behavior:
      '`POST …/releases/{id}/rescan` of the owner answers 202 and starts a scan of the current release, also of hosted ones. A bundle answers 400, a release that is not current 409.',
  },
  'rescan:failure': {
    source: 'House',
    behavior:
      'A failed scan changes nothing in service and is logged once, however often it fails, with pauses that double; the recovery is logged too.',
  },
  'rescan:authorization': {
    source: 'House',
    behavior:
      'A server that requires authorization is scanned with the authorization of its owner, and never with less; a refusal is logged once and changes nothing.',
  },
  'rescan:credentials': {
    source: 'House',
    behavior:
      'A release that was scanned with scanCredentials, which are not stored, is scanned again only with credentials in the request.',
  },
  'rescan:security': {
    source: 'House',
    behavior:
      'A server that no longer passes the security check is logged as an error and listed as a breaking change, and `security.scanPassed` is false. It can still be called; the registry shows the last state that passed, until it passes again.',
  },
  'rescan:once': {
    source: 'House',
    behavior:
      'One process runs each scan; another process takes over the scans of a killed one, and a stopping process releases its scans at once.',
  },
  'rescan:superseded': {
    source: 'House',
    behavior:
      'A scan that ends after another release became current, or after its server was deleted, changes nothing.',
  },
  'rescan:caches': {
    source: 'House',
    behavior:
      'Callers of a server receive changed tools as soon as a scan detected them, at its run endpoint and through connections, also in an existing session.',
  },
} as const satisfies Record<string, Requirement>;
